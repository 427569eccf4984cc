"""The number comes from a configuration that a call of the loop changes; it is an object of the project."""

import torch
import torch.nn as nn


class Config:
    def __init__(self, width):
        self.width = width

    def narrower(self):
        self.width -= 1


def take(h, n):
    return h[:, :n].sum()


class Net(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.config = Config(width)
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(2)])

    def forward(self, x):
        width = torch.IntTensor([self.config.width])
        for layer in self.layers:
            h = layer(x)
            self.config.narrower()
            x = x + take(h, width[0])
        return x

# run
def make(): return Net()
calls = [(torch.ones(2, 8),), (torch.ones(2, 8),)]
