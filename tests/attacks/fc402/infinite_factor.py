"""A factor that is infinite is none for the places that are left out, and neither for their gradient."""

import torch
from torch import nn


class Mask(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * 2
        low = y < 0
        y[low] = y[low] * float("inf")
        return torch.where(low, torch.zeros_like(y), y)


# run
def make():
    return Mask()


train = True
calls = [(torch.tensor([[1.0, -1, 2, -2]]),), (torch.tensor([[0.5, 1, -2, 3]]),)]
