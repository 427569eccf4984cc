"""The scale may be missing; elements below zero become positive on both ways."""

import torch
from torch import nn


class Fold(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.scales = scales

    def forward(self, x, name: str):
        y = x * 2
        try:
            y = y * self.scales[name]
        except KeyError:
            y = y + 0.25
        low = y < 0
        z = y.abs()
        y[low] = z[low]
        return y


# run
def make():
    return Fold({"wide": 3.0})


calls = [(torch.randn(3, 4), "wide"), (torch.randn(3, 4), "narrow")]
