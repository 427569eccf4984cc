"""A mixin of another file counts how often attributes are assigned."""

import torch
from torch import nn

from other import Counting


class Net(Counting, nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Buffer(torch.arange(4.0))

    def forward(self, x):
        self.table = self.table.to(x.device)
        return x + self.table * type(self).assigned


# run
def make():
    Net.assigned = 0
    return Net()


calls = [(torch.ones(4),), (torch.ones(4),)]
