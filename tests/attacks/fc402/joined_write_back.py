"""Changed where it is negative, and written back; bound on two paths."""

import torch
from torch import nn


class Leaky(nn.Module):
    """A slope for negative values."""

    def __init__(self, slope: float):
        super().__init__()
        self.slope = float(slope)

    def forward(self, x: torch.Tensor, flag: bool = False):
        y = x.float() * 2
        low = y < 0
        if flag:
            y = y * self.slope
        y[low] = y[low] * 0.5
        return y


# run
def make():
    return Leaky(3.0)


calls = [(torch.randn(3, 4),), (torch.randn(3, 4), True), (torch.randn(5),)]
