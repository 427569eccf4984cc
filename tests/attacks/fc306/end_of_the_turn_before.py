"""In a loop, the end is that of the turn before; the slice is longer than one row, which is broadcast."""

import torch
from torch import nn


class Keep(nn.Module):
    def forward(self, x, at: torch.Tensor):
        out = torch.zeros(8, 3)
        start = at
        end = start + 1
        for turn in range(3):
            out[start:end] = x + turn
            end = end + 1
        return out


# run
def make():
    return Keep()


calls = [(torch.ones(1, 3), torch.tensor(at)) for at in (0, 2, 6)]
