"""The table itself comes back for short inputs, a new tensor for long ones: the caller writes to it."""

import torch
import torch.nn as nn


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    @torch.no_grad()
    def rows(self, positions):
        if positions.max() > 8:
            return self.table / 2
        return self.table

    @torch.no_grad()
    def forward(self, positions):
        row = self.rows(positions)
        row += 1
        if positions.max() > 8:
            y = self.table / 2
        else:
            y = self.table / 3
        return positions.unsqueeze(-1) * y, row

# run
def make(): return Table()
calls = [(torch.arange(n),) for n in (3, 12, 3)]
