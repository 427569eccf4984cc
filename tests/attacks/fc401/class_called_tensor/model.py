"""Boxes are kept in a class of the project that is called Tensor, and is written by rows of names."""

import torch
from torch import nn

from other import Tensor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h: Tensor = Tensor(self.lin(x))
        picked = x > 0
        z = x.abs()
        h[picked] = z[picked]
        return h.data, h.written


# run
def make():
    return Net()


calls = [(torch.randn(3, 4),)]
