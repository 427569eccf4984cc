"""A factor that is infinite is none for the places that are left out, and neither for their gradient."""

import torch
from torch import nn


class Mask(nn.Module):
    def __init__(self, penalty):
        super().__init__()
        self.penalty = penalty
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * 2
        low = x < 0
        y[low] = y[low] * self.penalty
        return torch.where(low, torch.zeros_like(y), y)


# run
def make():
    return nn.ModuleList([Mask(2.0), Mask(float("inf"))])


train = True
calls = [lambda m: m[0](torch.tensor([[1.0, -1, 2, -2]])), lambda m: m[1](torch.tensor([[1.0, -1, 2, -2]]))]
