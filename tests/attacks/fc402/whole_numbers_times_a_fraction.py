"""Times a fraction: whole numbers become floats, and cannot be written back."""

import torch
from torch import nn


class Scale(nn.Module):
    def forward(self, x: torch.Tensor):
        y = x + 1
        low = y > 1
        y[low] = y[low] * 0.5
        y[low] = y[low] + 0.25
        return y


# run
def make():
    return Scale()


calls = [(torch.arange(4.0),), (torch.arange(4),), (torch.arange(4, dtype=torch.uint8),), (torch.zeros(2, dtype=torch.bool),)]
