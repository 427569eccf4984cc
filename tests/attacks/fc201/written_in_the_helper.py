"""The function that takes the bound clamps it in place for the turns that follow."""

import torch
import torch.nn as nn


def take(h, n):
    part = h[:, :n].sum()
    n -= 1
    return part


class Net(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.width = width
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x):
        width = torch.IntTensor([self.width])
        for layer in self.layers:
            h = layer(x)
            x = x + take(h, width[0])
        return x, width

# run
def make(): return Net()
calls = [(torch.ones(2, 8),), (torch.ones(2, 8),)]
