"""The module around it zeroes the buffer by a method that it looks up by its name."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride=2):
        super().__init__()
        self.conv = nn.Conv1d(2, 2, 3, 2)
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)

    def forward(self, x):
        x = F.pad(x, (self.stride, 0))
        return self.conv(x)


class Search(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Conv()
        getattr(self.inner.stride, "zero_")()

    def forward(self, x):
        return self.inner(x)

# run
def make(): return Search()
calls = [(torch.ones(1, 2, 8),)]
