"""The table of a subclass of another file is a property that counts and grows: one look in each call."""

import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        if positions.max() > 8:
            y = self.table / 2
        else:
            y = self.table / 3
        return positions.unsqueeze(-1) * y

# run
from counting import Counting
def make(): return Counting()
calls = [(torch.arange(n),) for n in (3, 12)]
def state(m): return m.asked
