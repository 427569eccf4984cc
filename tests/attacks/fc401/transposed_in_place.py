"""The values are laid out the other way round after the mask was made for that."""

import torch
from torch import nn


class Tracks(nn.Module):
    def __init__(self):
        super().__init__()
        self.blank = nn.Parameter(torch.zeros(3))

    def layout(self, h):
        h.transpose_(0, 1)

    def forward(self, x):
        h = x * 2
        loud = h[:, 0] > 0
        self.layout(h)
        h.transpose_(0, 1)
        h[loud] = self.blank
        return h


# run
def make():
    return Tracks()


calls = [(torch.randn(5, 3),), (torch.randn(3, 3),)]
