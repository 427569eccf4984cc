"""A class below asks the number for its dtype, and for an array of it."""

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
        return F.pad(x, (0, int(n * self.hop) - n))


class Below(Net):
    def forward(self, x):
        return super().forward(x), self.hop.astype(np.float32) / 2


# run
unsafe = True


def make():
    return Below([2, 3])


calls = [(torch.ones(2, n),) for n in (5, 6, 7)]
