"""An empty write still counts as a change of a tensor that backward needs."""

import torch
import torch.nn as nn


class Clip(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3)

    def forward(self, x):
        h = self.proj(x)
        y = h.exp()
        bad = y > 1e6
        z = y * y
        if bad.any():
            y[bad] = 1e6
        return z + y

# run
def make(): return Clip()
calls = [(torch.ones(2, 3),)]
train = True
