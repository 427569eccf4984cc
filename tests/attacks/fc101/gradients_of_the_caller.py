"""``no_grad`` stands on ``forward``; the trainer calls ``table`` itself, with gradients."""

import torch
import torch.nn as nn


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.short = nn.Parameter(torch.ones(4))
        self.long = nn.Parameter(torch.full((4,), 2.0))

    @torch.no_grad()
    def forward(self, positions):
        return self.table(positions).cos()

    def table(self, positions):
        end = positions.max() + 1
        if end > 8:
            frequencies = self.long / 2
        else:
            frequencies = self.short / 3
        return positions.unsqueeze(-1) * frequencies

# run
def make(): return Rotary()
calls = [lambda m, n=n: m.table(torch.arange(n)) for n in (3, 12)]
train = True
