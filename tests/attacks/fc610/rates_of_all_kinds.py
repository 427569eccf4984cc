"""The rate is no number between zero and one, or no number of Python."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.drop = drop

    def forward(self, x):
        if torch.rand(()) < self.drop:
            x = x + 1
        if torch.rand(()) >= self.drop: x = x + 2
        if not torch.rand(()) >= self.drop:
            x = x + 4
        if self.drop > torch.rand(()):
            x = x + 8
        return x + torch.rand(3)


# run
import numpy as np

RATES = (0, 1, True, float("nan"), float("inf"), -0.0, -1, 1e-60, 0.5, np.array([0.5]), torch.tensor(0.5), 2**70)


def make():
    return Net()


calls = [(lambda m, d=d: (setattr(m, "drop", d), m(torch.ones(3)))[1]) for d in RATES]
