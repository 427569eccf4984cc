"""Another file puts a table of another shape and dtype into the module: the new tensor of the other arm stays."""

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
            y = torch.zeros_like(self.table)
        return y + 1

# run
from heads import with_heads
def make(): return with_heads(Rotary())
calls = [(torch.arange(n),) for n in (3, 12)]
