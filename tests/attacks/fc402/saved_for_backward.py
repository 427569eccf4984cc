"""Squares of what is then overwritten: the gradient needs the values from before."""

import torch
from torch import nn


class Square(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * 2
        z = y.contiguous()
        low = y < 0
        y[low] = z[low] * z[low]
        return y


# run
def make():
    return Square()


train = True
calls = [(torch.randn(3, 4),)]
