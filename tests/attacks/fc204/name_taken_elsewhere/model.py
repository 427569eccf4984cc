"""A subclass of another file has a method ``_positions_eagerly``, and others with likely names."""

import torch
import torch.nn as nn


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 4)

    def positions(self, x, grid, merge):
        x = self.lin(x).tanh()
        found = []
        for height, width in grid.tolist():
            rows = torch.arange(height).view(-1, 1).expand(-1, width)
            columns = torch.arange(width).view(1, -1).expand(height, -1)
            found.append(torch.stack([rows, columns], -1).reshape(-1, 2) // merge)
        longest = grid.max().item()
        return torch.cat(found), longest, x

    def forward(self, x, grid):
        places, longest, x = self.positions(x, grid, 2)
        return self.lin(places.float() / longest), x

# run
from wider import Wider
def make(): return Wider()
calls = [(torch.ones(2, 2), torch.tensor([[2, 3], [1, 4]]))]
unsafe = True
