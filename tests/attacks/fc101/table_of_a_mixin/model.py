"""A class of another file, above in the order of resolution, makes the table when it is asked for."""

import torch
import torch.nn as nn

from tables import Lazy


class Rotary(Lazy, nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("base", torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        if positions.max() > 8:
            y = self.table / 2
        else:
            y = self.base / 3
        if positions.min() < 1:
            z = self.base * 2
        else:
            z = self.base * 5
        return positions.unsqueeze(-1) * y, z

# run
def make(): return Rotary()
calls = [(torch.arange(n),) for n in (3, 12)]
