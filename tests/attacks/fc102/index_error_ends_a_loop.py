"""A class without ``__iter__``: the IndexError of ``__getitem__`` is how ``for`` ends."""

import torch
import torch.nn as nn


class Chunks:
    def __init__(self, x, ends):
        self.x, self.ends = x, ends

    def __getitem__(self, i):
        if torch.le(self.ends, i).all():
            raise IndexError(i)
        return self.x[i]


class Net(nn.Module):
    def forward(self, x, ends):
        total = torch.zeros_like(x[0])
        for row in Chunks(x, ends):
            total = total + row * 2
        return total

# run
def make(): return Net()
calls = [(torch.ones(4, 2), torch.tensor([1, 3]))]
