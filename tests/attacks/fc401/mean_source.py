"""The mean keeps its dimension: a mask for all rows does not fit it."""

import torch
from torch import nn


class Restore(nn.Module):
    def forward(self, x):
        h = x * 2
        z = h.mean(0, keepdim=True)
        bad = h < 0
        h[bad] = z[bad]
        return h


# run
def make():
    return Restore()


calls = [(torch.randn(1, 4),), (torch.randn(3, 4),)]
