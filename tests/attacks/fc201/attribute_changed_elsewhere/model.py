"""The schedule of another file sets the width of the module that it is given."""

import torch
import torch.nn as nn

from schedule import advance


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
            advance(self)
            x = x + take(h, width[0])
        return x

# run
def make(): return Net(8)
calls = [(torch.ones(2, 8),), (torch.ones(2, 8),)]
