"""Whole numbers that are halved are no whole numbers any more: an error, and it stays one."""

import torch
from torch import nn


class Halve(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, ids):
        n = ids.long() * 2
        big = n > 4
        n[big] = n[big] * self.scale
        return n


# run
def make():
    return nn.ModuleList([Halve(3), Halve(0.5)])


calls = [lambda m: m[0](torch.arange(6)), lambda m: m[1](torch.arange(6))]
