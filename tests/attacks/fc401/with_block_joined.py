"""Values are bound in a block that a context manager may leave early."""

import contextlib

import torch
from torch import nn


class Net(nn.Module):
    """Folds negative values over, after a scaling that may not be possible."""

    def __init__(self, table):
        super().__init__()
        self.table = table

    def forward(self, x, name: str):
        low = x < 0
        y = x * 2
        with contextlib.suppress(KeyError):
            scale = self.table[name]
            y = y * scale
            low = y < scale
        z = y.abs()
        y[low] = z[low]
        return y


# run
def make():
    return Net({"wide": 0.5})


calls = [(torch.randn(3, 4), "wide"), (torch.randn(4, 4), "narrow"), (torch.randn(4), "wide")]
