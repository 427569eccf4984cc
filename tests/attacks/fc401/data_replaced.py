"""The tensor gets other data between mask and write: the same object with another shape."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        h = (x * 2).detach()
        low = h < 0
        z = h.abs()
        h.data = torch.stack([h, h], -1)
        z.data = torch.stack([z, z], -1) + 1
        h[low] = z[low]
        return h


# run
def make():
    return Net()


calls = [(torch.randn(3, 4),), (torch.randn(3, 3),), (torch.randn(3),)]
