"""The projection is whatever the constructor is given; hooks and counters in it run for the arm that was taken."""

import torch
import torch.nn as nn


class Refine(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 3)

    @torch.no_grad()
    def forward(self, x):
        if x.abs().max() > 4:
            y = self.proj(x)
        else:
            y = x * 2.0
        return y

# run
from recorder import recorded
def make(): return recorded(Refine())
calls = [(torch.ones(2, 3) * k,) for k in (1.0, 9.0)]
def state(m): return m.proj.seen
