"""The trainer takes the decorator off with ``__wrapped__``: gradients are on in the same body."""

import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(4))

    @torch.no_grad()
    def rows(self, positions):
        if positions.max() > 8:
            y = self.table.detach() / 2
        else:
            y = self.table / 3
        return positions.unsqueeze(-1) * y

    def forward(self, positions):
        if self.training:
            return type(self).rows.__wrapped__(self, positions)
        return self.rows(positions)

# run
def make(): return Rotary()
calls = [(torch.arange(n),) for n in (3, 12)]
train = True
