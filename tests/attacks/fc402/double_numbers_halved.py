"""Halves of what may be whole numbers: the caller gives numbers of every kind."""

import torch
from torch import nn


class Halve(nn.Module):
    def forward(self, x):
        y = x.clone()
        low = y > 1
        y[low] = y[low] / 2
        return y


# run
def make():
    return Halve()


calls = [(torch.arange(4.0),), (torch.arange(4),), (torch.arange(4.0).half(),), (torch.arange(4).bool(),), (torch.zeros(3, dtype=torch.long),)]
