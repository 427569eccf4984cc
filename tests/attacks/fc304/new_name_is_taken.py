"""The name that offers itself is that of a function of the module."""

import torch
from torch import nn


def new_table(x):
    return x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.arange(4.0))

    def forward(self, x):
        x = new_table(x)
        self.table = self.table.to(x.dtype)
        return new_table(x) + self.table


# run
def make():
    return Net()


calls = [(torch.ones(4),), (torch.ones(4).double(),), (torch.ones(4),)]
