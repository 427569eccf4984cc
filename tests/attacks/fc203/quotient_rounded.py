"""Quotients that are rounded up and down, of sizes that do not divide, and of zero."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Conv(nn.Module):
    def __init__(self, stride=49, kernel=7):
        super().__init__()
        self.register_buffer("stride", torch.tensor(stride, dtype=torch.int64), persistent=False)
        self.register_buffer("kernel", torch.tensor(kernel, dtype=torch.int64), persistent=False)

    def _extra(self, x):
        frames = (x.shape[-1] - self.kernel) / self.stride + 1
        ideal = (torch.ceil(frames).to(torch.int64) - 1) * self.stride + self.kernel
        return ideal - x.shape[-1]

    def _less(self, x):
        return torch.floor(x.shape[-1] / self.stride).to(torch.int64)

    def forward(self, x):
        x = F.pad(x, (0, self._extra(x)))
        return F.pad(x, (self._less(x), 0))

# run
def make(): return Conv()
calls = [(torch.ones(1, n),) for n in (1, 7, 48, 49, 50, 56, 98, 105)]
