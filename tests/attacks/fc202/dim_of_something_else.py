"""`dim`, `ndim` and `shape` of an object of the project."""

import torch
from torch import nn


class Box:
    def __init__(self, x):
        self.x = x
        self.shape = (1.5, 2.5)
        self.ndim = 2.5

    def dim(self):
        return 1.5

    def size(self, n=0):
        return 2.5


class Net(nn.Module):
    def forward(self, x):
        box = Box(x)
        a = torch.arange(box.dim()).tolist()
        b = torch.arange(box.ndim).tolist()
        c = torch.arange(len(box.shape)).tolist()
        d = torch.arange(box.shape[0]).tolist()
        e = torch.arange(box.size(0)).tolist()
        return x, a, b, c, d, e


# run
unsafe = True


def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(2, 3),), (torch.tensor(1.0),)]
