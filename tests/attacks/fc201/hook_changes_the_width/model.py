"""A hook on a layer, registered by another file of the project, sets the width."""

import torch
import torch.nn as nn


def take(h, n):
    return h[:, :n].sum()


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
        return x

# run
from narrowing import narrowing
def make(): return narrowing(Net())
calls = [(torch.ones(2, 8),), (torch.ones(2, 8),)]
