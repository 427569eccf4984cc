"""A helper for arrays of NumPy and for tensors, which asks what it has got."""

import numpy as np
import torch
from torch import nn


def ranked(x):
    order = x.argsort(-1)
    late = order > 1
    total = order[late].sum()
    if isinstance(x, np.ndarray):
        return float(total)
    return total


class Net(nn.Module):
    def forward(self, x):
        return ranked(x)


# run
def make():
    return Net()


calls = [(torch.randn(2, 3),), (np.ones((2, 3)),), (torch.ones(0, 2),)]
