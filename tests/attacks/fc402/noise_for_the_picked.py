"""Noise is drawn for the places that are picked, and for no others: the generator stands where it stood."""

import torch
import torch.nn.functional as F
from torch import nn


class Noise(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x * 2
        low = y < 0
        y[low] = F.dropout(y[low], 0.5, self.training) + 1
        y[~low] = y[~low] + torch.randn_like(y[~low])
        y[low] = y[low] * 2
        return y, torch.rand(2)


# run
def make():
    return Noise()


calls = [(torch.randn(3, 4),)]
