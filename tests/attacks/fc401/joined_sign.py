"""A flag doubles the values first; the elements below zero become their absolute values, whatever the flag says."""

import torch
from torch import nn


class Fold(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = 2.0

    def forward(self, x, flag: bool = False):
        y = x * 2
        low = y < 0
        if flag:
            y = y * self.gain
        z = y.abs()
        y[low] = z[low]
        return y


# run
def make():
    return Fold()


calls = [(torch.randn(3, 4),), (torch.randn(3, 4), True), (torch.randn(4),)]
