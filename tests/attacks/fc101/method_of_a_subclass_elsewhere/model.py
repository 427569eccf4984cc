"""``stretch`` is pure here; a subclass in another file keeps a cache and raises for what it does not know."""

import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    def stretch(self, end):
        return self.table / end

    @torch.no_grad()
    def forward(self, positions):
        end = positions.max() + 1
        if end > 8:
            frequencies = self.stretch(end)
        else:
            frequencies = self.table / 1.0
        return positions.unsqueeze(-1) * frequencies

# run
from cached import Cached
def make(): return Cached()
calls = [(torch.arange(n),) for n in (3, 12)]
