"""A template of one row is no row for each place: the index is out of range."""

import torch
from torch import nn


class Restore(nn.Module):
    def __init__(self):
        super().__init__()
        self.template = nn.Parameter(torch.ones(1, 4))

    def forward(self, x):
        h = x.view(-1, 4) * 2
        z = self.template * 3
        bad = h.sum(-1) < 0
        h[bad] = z[bad]
        return h


# run
def make():
    return Restore()


calls = [(torch.randn(3, 4),), (-torch.ones(1, 4),), (torch.ones(3, 4),)]
