"""For a batch of one nothing is below zero, and nothing is divided by the zero that its size gives."""

import torch
from torch import nn


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * 2
        far = y.abs() * (x.shape[0] - 1) > 0.1
        y[far] = y[far] / (x.shape[0] - 1)
        return y


# run
def make():
    return Spread()


train = True
calls = [(torch.randn(3, 4),), (torch.randn(1, 4),)]
