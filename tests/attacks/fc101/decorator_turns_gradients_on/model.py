"""Fine-tuned frequencies: gradients of the arm that was taken, none for the table of the other arm."""

import torch
import torch.nn as nn

from tracing import trainable


class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.short = nn.Parameter(torch.ones(4))
        self.long = nn.Parameter(torch.full((4,), 2.0))

    @torch.no_grad()
    def forward(self, positions):
        return self.table(positions)

    @trainable
    @torch.no_grad()
    def scale(self, positions):
        return positions * 2.0

    @torch.no_grad()
    @trainable
    def table(self, positions):
        end = positions.max() + 1
        if end > 8:
            frequencies = self.long / 2
        else:
            frequencies = self.short / 3
        return positions.unsqueeze(-1) * frequencies

# run
def make(): return Rotary()
calls = [(torch.arange(n),) for n in (3, 12)]
train = True
