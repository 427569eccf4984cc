"""Interpolation between positions sends gradients to the input; modes are those of the caller."""

import torch
import torch.nn as nn


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.arange(12.0).view(6, 2))

    def positions(self, x, grid):
        found = []
        for height, width in grid.tolist():
            found.append(x[:height].sum() * torch.arange(width).float() + x[0, 0])
        longest = grid.max().item()
        return torch.cat(found) / longest, torch.is_grad_enabled()

    def forward(self, x, grid):
        y, recorded = self.positions(self.table + x, grid)
        with torch.no_grad():
            z, silent = self.positions(self.table * 2, grid)
        return y + z, recorded, silent

# run
def make(): return Vision()
calls = [(torch.ones(6, 2), torch.tensor([[2, 3], [5, 4]]))]
train = True
unsafe = True
