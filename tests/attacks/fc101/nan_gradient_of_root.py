"""The square root has an infinite gradient at 0, where the other arm is taken."""

import torch
import torch.nn as nn


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3, bias=False)

    def forward(self, x):
        h = self.proj(x)
        energy = h.pow(2).sum()
        if energy > 1e-6:
            y = h / energy.sqrt()
        else:
            y = h * 0.5
        return y.sin()

# run
def make(): return Spread()
calls = [(torch.ones(2, 3),), (torch.zeros(2, 3),)]
train = True
