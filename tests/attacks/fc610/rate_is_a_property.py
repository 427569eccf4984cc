"""To ask for the rate does something: it is annealed each time, or drawn."""

import torch
from torch import nn


class Layer(nn.Module):
    @property
    def chance(self):
        return torch.rand(()).item() * 0.5

    def forward(self, x):
        return x * 2


class Net(nn.Module):
    def __init__(self, drop=0.0, chance=0.0):
        super().__init__()
        self.drop = drop
        self.chance = chance
        self.layers = nn.ModuleList([Layer(), Layer(), Layer()])

    def forward(self, x):
        for layer in self.layers:
            luck = torch.rand(())
            if luck >= layer.chance:
                x = layer(x)
        if torch.rand(()) < self.drop:
            return x
        return x + 1


class Annealed(Net):
    def __setattr__(self, name, value):
        super().__setattr__("_drop" if name == "drop" else name, value)

    @property
    def drop(self):
        self._drop = self._drop * 0.5
        return self._drop


# run
def make():
    return Annealed(0.9)


calls = [(torch.ones(3),)] * 4
