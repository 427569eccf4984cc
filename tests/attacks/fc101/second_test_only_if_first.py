"""The maximum of no elements is an error: it is only asked for where there are some."""

import torch
import torch.nn as nn


class Peaks(nn.Module):
    @torch.no_grad()
    def forward(self, x):
        mask = x > 3
        if mask.any() and x.amax() > 7:
            y = x / 2
        else:
            y = x * 1.5
        return y

# run
def make(): return Peaks()
calls = [(torch.ones(2, 3) * k,) for k in (1.0, 5.0, 9.0)]
