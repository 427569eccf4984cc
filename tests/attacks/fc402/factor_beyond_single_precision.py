"""A factor that single precision does not hold is infinite there, and times the zero of a place left out no zero."""

import torch
from torch import nn


class Lift(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * 2
        low = y < -99
        y[low] = y[low] * 1e39
        other = self.lin(x) + 1
        high = other > 99
        other[high] = other[high] / 1e-46
        return y, other


# run
def make():
    return Lift()


train = True
calls = [(torch.randn(3, 4),)]
