"""Modules of a folder without ``__init__.py`` are called like a library: what they count must not change."""

import torch.nn as nn

from helpers import math
from helpers.math import exp
from helpers.torch import relu, seen


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = relu(x)
        else:
            y = x * 2
        if x.max() > 2:
            z = y * exp(1.0)
        else:
            z = y * 3
        if x.min() > 3:
            z = z + math.exp(2.0)
        return z, len(seen), len(math.seen)


# run
import torch


def make():
    return Net()


calls = [(torch.ones(3),), (-torch.ones(3),), (torch.full((3,), 9.0),)]
