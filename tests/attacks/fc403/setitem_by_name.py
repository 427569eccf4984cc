"""The list of lengths is changed by a method that is spelled out, after the tensor was made."""

import torch
from torch import nn


class Owners(nn.Module):
    def forward(self, parts):
        counts = [len(p) for p in parts]
        repeats = torch.tensor(counts)
        counts.__setitem__(0, 0)
        owners = torch.repeat_interleave(torch.arange(len(counts)), repeats)
        return owners, counts


# run
def make():
    return Owners()


calls = [([torch.ones(2), torch.ones(3)],), ([torch.ones(1)],)]
