"""Whole rows are replaced, or single elements, as the caller asks."""

import torch
from torch import nn


class Cut(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x, rows: bool = False):
        y = x.float() * 2
        z = y.clamp(-1, 1)
        large = y.abs() > self.limit
        if rows:
            large = large.any(-1)
        y[large] = z[large]
        return y


# run
def make():
    return Cut(1.5)


calls = [(torch.randn(3, 4),), (torch.randn(3, 4), True), (torch.randn(3, 3), True)]
