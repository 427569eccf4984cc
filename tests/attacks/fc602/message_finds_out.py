"""A message is there to find out what is missing, or whether there is anything to divide by."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        try:
            print(self.scale)
            known = True
        except AttributeError:
            known = False
        try:
            print(1 / self.calls)
        except ZeroDivisionError:
            x = x + 1
        return x, known


# run
def make():
    return Net()


calls = [(torch.ones(3),)] * 2
