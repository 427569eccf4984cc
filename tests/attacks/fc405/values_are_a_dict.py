"""The target of the places is the class of the project that keeps what it is given."""

import torch
from torch import nn


class Slots(dict):
    def __setitem__(self, key, value):
        super().__setitem__(tuple(int(k.sum()) for k in key) if isinstance(key, tuple) else "mask", value)


class Net(nn.Module):
    def forward(self, x):
        closed = torch.logical_not(x)
        slots = Slots()
        slots[torch.where(closed.sum(-1) == closed.shape[-1])] = 1
        closed[torch.where(closed.sum(-1) == closed.shape[-1])] = False
        return closed, list(slots)


# run
def make():
    return Net()


calls = [(torch.zeros(2, 3),)]
