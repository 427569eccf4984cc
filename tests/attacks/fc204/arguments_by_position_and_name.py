"""Star arguments, keyword-only ones, defaults that are shared between calls."""

import torch
import torch.nn as nn


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def positions(self, x, *grids, merge=1, seen=[], **more):
        x = self.lin(x).tanh()
        found = []
        for grid in grids:
            for height, width in grid.tolist():
                found.append(torch.arange(height * width) // merge)
        total = grids[0].sum().item()
        seen.append(total)
        return torch.cat(found) * more.get("scale", 1), len(seen), x

    def forward(self, x, grid):
        return self.positions(x, grid, grid + 1), self.positions(x, grid, merge=2, scale=3)

# run
def make(): return Vision()
calls = [(torch.ones(2, 2), torch.tensor([[2, 3], [1, 4]]))]
unsafe = True
