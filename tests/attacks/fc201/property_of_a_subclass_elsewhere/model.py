"""The width is a plain number here, and a property that goes down with every look in a subclass of another file."""

import torch
import torch.nn as nn


def take(h, n):
    return h[:, :n].sum()


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.width = width
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x):
        width = torch.IntTensor([self.width])
        for layer in self.layers:
            h = layer(x)
            x = x + take(h, width[0])
        return x

# run
from shrinking import Shrinking
def make(): return Shrinking(6)
calls = [(torch.ones(2, 8),), (torch.ones(2, 8),)]
