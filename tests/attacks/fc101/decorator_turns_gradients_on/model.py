"""The table of short inputs is learnt: its gradient, and none through the arm for long ones."""

import torch
import torch.nn as nn

from tracing import trainable


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.ones(4))

    @torch.no_grad()
    @trainable
    def forward(self, positions):
        if positions.max() > 8:
            y = self.table.detach() / 2
        else:
            y = self.table / 3
        return positions.unsqueeze(-1) * y

# run
def make(): return Rotary()
calls = [(torch.arange(n),) for n in (3, 12)]
train = True
