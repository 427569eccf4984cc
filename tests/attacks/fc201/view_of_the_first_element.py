"""``x[0]`` is memory of ``x``: subtracting it in place changes it on the way, and it is used again."""

import torch
import torch.nn as nn


class Shift(nn.Module):
    def forward(self, x):
        first = x[0].item()
        x -= first
        return x + first

# run
def make(): return Shift()
calls = [(torch.arange(4.0) + 2,)]
