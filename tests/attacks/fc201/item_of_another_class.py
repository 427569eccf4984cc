"""``item()`` of a class of the project says whether there is one; the object itself is always true."""

import torch
import torch.nn as nn


class Slot:
    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class Net(nn.Module):
    def forward(self, x, slot):
        assert slot.item()
        assert x.max().item(), "only zeros"
        return x * 2

# run
def make(): return Net()
calls = [(torch.ones(2), Slot(1)), (torch.ones(2), Slot(0)), (torch.zeros(2), Slot(1))]
