"""The caller looks at which warnings came, and scales by their number."""

import warnings

import torch
from torch import nn


class Core(nn.Module):
    def forward(self, x):
        if x.shape[0] > 2:
            warnings.warn("many rows")
        return x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.core = Core()

    def forward(self, x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = self.core(x)
        return y, len(caught)


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(3),)]
