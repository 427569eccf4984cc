"""The list is changed by a method that was bound to a name, between tensor and use."""

import torch
from torch import nn


class Owners(nn.Module):
    def forward(self, parts):
        counts = [len(p) for p in parts]
        put = counts.__setitem__
        repeats = torch.tensor(counts)
        marks = torch.arange(len(counts))
        put(0, 7)
        return torch.repeat_interleave(marks, repeats), counts


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],)]
