"""The plain case: positions of every picture, in a loop."""

import torch
import torch.nn as nn


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 4)

    def positions(self, grid, merge):
        found = []
        for height, width in grid.tolist():
            rows = torch.arange(height).view(-1, 1).expand(-1, width)
            columns = torch.arange(width).view(1, -1).expand(height, -1)
            found.append(torch.stack([rows, columns], -1).reshape(-1, 2) // merge)
        longest = grid.max().item()
        return torch.cat(found), longest

    def forward(self, grid):
        places, longest = self.positions(grid, 2)
        return self.lin(places.float() / longest)

# run
def make(): return Vision()
calls = [(torch.tensor([[2, 3], [1, 4]]),)]
unsafe = True
