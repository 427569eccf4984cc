"""A name that is bound in one arm only, one that is deleted, and ``locals()``."""

import torch
import torch.nn as nn


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def positions(self, x, grid, scale=None):
        y = self.lin(x).tanh()
        if scale is not None:
            factor = scale * 2
        found = []
        for height, width in grid.tolist():
            part = torch.arange(height * width)
            found.append(part)
            del part
        longest = grid.max().item()
        if scale is not None:
            longest = longest * factor
        return torch.cat(found) / longest, y, sorted(locals())

    def forward(self, x, grid, scale=None):
        return self.positions(x, grid, scale)

# run
def make(): return Vision()
calls = [(torch.ones(2, 2), torch.tensor([[2, 3], [1, 4]])), (torch.ones(2, 2), torch.tensor([[2, 3]]), 2)]
unsafe = True
