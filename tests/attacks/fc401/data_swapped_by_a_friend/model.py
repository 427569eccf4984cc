"""A function of another file gives the tensor other data: one more dimension between mask and write."""

import torch
from torch import nn

from other import pairs


class Net(nn.Module):
    def forward(self, x):
        h = x * 2
        low = h < 0
        pairs(h)
        z = h.abs()
        h[low] = z[low]
        return h


# run
def make():
    return Net()


calls = [(torch.randn(3, 4),), (torch.randn(3),)]
