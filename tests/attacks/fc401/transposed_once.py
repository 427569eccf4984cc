"""A mask over the columns of a square picture: turned in place between mask and write."""

import torch
from torch import nn


def turn(picture):
    picture.t_()


class Columns(nn.Module):
    def __init__(self):
        super().__init__()
        self.border = nn.Parameter(torch.full((4,), 9.0))

    def forward(self, x):
        h = x.view(4, 4) * 2
        dark = h.sum(1) < 0
        turn(h)
        h[dark] = self.border
        return h


# run
def make():
    return Columns()


calls = [(torch.randn(16),), (torch.randn(4, 4),)]
