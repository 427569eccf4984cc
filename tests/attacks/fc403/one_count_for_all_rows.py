"""One count in a tensor of one element goes for every row."""

import torch
from torch import nn


class Widen(nn.Module):
    def __init__(self, groups, factor):
        super().__init__()
        self.groups = groups
        self.factor = factor

    def forward(self, x):
        repeats = torch.full((self.groups,), self.factor)
        return x.repeat_interleave(repeats, dim=0)


# run
def make():
    return nn.ModuleList([Widen(4, 3), Widen(1, 3)])


x = torch.arange(8.0).view(4, 2)
calls = [lambda m: [part(x) for part in m]]
