"""A layer holds its parent in a list and makes it narrower when it has run."""

import torch
import torch.nn as nn


def take(h, n):
    return h[:, :n].sum()


class Layer(nn.Module):
    def __init__(self, owner):
        super().__init__()
        self.owner = [owner]

    def forward(self, x):
        self.owner[0].width -= 1
        return x * 2


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.width = width
        self.layers = nn.ModuleList([Layer(self) for _ in range(2)])

    def forward(self, x):
        width = torch.IntTensor([self.width])
        for layer in self.layers:
            h = layer(x)
            x = x + take(h, width[0])
        return x

# run
def make(): return Net(8)
calls = [(torch.ones(2, 8),), (torch.ones(2, 8),)]
