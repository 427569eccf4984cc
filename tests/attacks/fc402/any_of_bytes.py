"""any and all of bytes are bytes, of truth values truth values."""

import torch
from torch import nn


class Flags(nn.Module):
    def forward(self, x: torch.Tensor, raw: bool = False):
        on = x > 0
        flags = on.to(torch.uint8) if raw else on.logical_not()
        return flags[on].any(), flags[on].all(), flags[on].sum()


# run
def make():
    return Flags()


calls = [(torch.randn(3, 4),), (torch.randn(3, 4), True), (-torch.ones(2),), (-torch.ones(2), True)]
