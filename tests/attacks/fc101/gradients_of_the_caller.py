"""``no_grad`` stands on ``forward``; the trainer calls ``rows`` itself, with gradients."""

import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(4))

    @torch.no_grad()
    def forward(self, positions):
        return self.rows(positions).cos()

    def rows(self, positions):
        if positions.max() > 8:
            y = self.table.detach() / 2
        else:
            y = self.table / 3
        return positions.unsqueeze(-1) * y

    @torch.no_grad()
    def silent(self, positions):
        if positions.max() > 8:
            y = self.table / 2
        else:
            y = self.table / 3
        return positions.unsqueeze(-1) * y

# run
def make(): return Rotary()
calls = [f for n in (3, 12) for f in (lambda m, n=n: m.rows(torch.arange(n)), lambda m, n=n: m.silent(torch.arange(n)))]
train = True
