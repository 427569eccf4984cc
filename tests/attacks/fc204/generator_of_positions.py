"""The function is a generator: its consumer stops early, and goes on in between."""

import torch
import torch.nn as nn


class Vision(nn.Module):
    def positions(self, grid, seen):
        for height, width in grid.tolist():
            seen.append(height)
            yield torch.arange(height * width) + grid.max().item()

    def forward(self, x, grid):
        seen = []
        total = x.sum() * 0
        for place in self.positions(grid, seen):
            total = total + place.sum() * len(seen)
            if len(seen) == 2:
                break
        return total, seen

# run
def make(): return Vision()
calls = [(torch.ones(2), torch.tensor([[2, 3], [1, 4], [5, 5]]))]
unsafe = True
