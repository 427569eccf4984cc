"""A coroutine: calling it does nothing until somebody awaits it."""

import torch
import torch.nn as nn

from loop import run


class Vision(nn.Module):
    async def positions(self, grid, seen):
        seen.append("started")
        found = [torch.arange(h * w) for h, w in grid.tolist()]
        longest = grid.max().item()
        return torch.cat(found) + longest

    def forward(self, grid):
        seen = []
        waiting = self.positions(grid, seen)
        seen.append("called")
        return run(waiting), seen

# run
def make(): return Vision()
calls = [(torch.tensor([[2, 3], [1, 4]]),)]
unsafe = True
