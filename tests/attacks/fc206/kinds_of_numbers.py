"""Rates that are floats, an array, nothing at all: what a size is made of them with is the same, or the same error."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, rates):
        super().__init__()
        self.hop = np.prod(rates)

    def forward(self, x):
        n = x.shape[-1]
        right = math.ceil(n / self.hop) * self.hop - n
        return F.pad(x, (0, int(right)))


# run
unsafe = True


def make():
    nets = [Net([2, 3]), Net([2.0, 2.5]), Net(np.array([5])), Net(()), Net([2.5, 2])]
    return lambda x, i: nets[i](x)


calls = [(torch.ones(2, n), i) for n in (5, 7) for i in range(5)]
