"""A function of another file takes the last length off the list."""

import torch
from torch import nn

from other import padded


class Owners(nn.Module):
    def forward(self, parts):
        counts = [len(p) for p in parts]
        repeats = torch.tensor(counts)
        marks = torch.arange(len(counts))
        rest = padded(counts)
        return torch.repeat_interleave(marks, repeats), rest


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],)]
