"""A function that calls itself some hundred times: a wrapper around each turn would be too deep for Python."""

import torch
import torch.nn as nn


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def places(self, grid: torch.Tensor, depth: int):
        grid = grid.abs() + 0
        found = []
        if depth:
            found += self.places(grid, depth - 1)
        for n in grid.tolist():
            for k in grid.nonzero().tolist():
                found.append(k[0])
        return found[:10]

    def forward(self, x, rows):
        return self.lin(x).sum() + len(self.places(rows, 700))

# run
def make(): return Rows()
calls = [(torch.ones(2, 2), torch.tensor([1, 4]))]
