"""Which rows are dropped is drawn each time that the property is read."""

import torch
from torch import nn

from other import Dropping


class Net(Dropping):
    def __init__(self):
        super().__init__()
        self.blank = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        h = x * 2
        z = h + 1
        h[self.dropped] = z[self.dropped]
        return h


# run
def make():
    return Net()


calls = [(torch.randn(6, 4),), (torch.randn(6, 4),)]
