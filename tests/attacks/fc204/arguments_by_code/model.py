"""Another file finds out what a function takes by its code, which a wrapper has not."""

import torch
import torch.nn as nn

from call import call, spec


def places(grid: torch.Tensor, scale=2):
    grid = grid.abs() + 0
    found = []
    for n in grid.tolist():
        for k in range(n):
            found.extend(torch.arange(k * scale).unique().tolist())
        for k in grid.nonzero().tolist():
            found.append(k[0])
    return torch.tensor(found, dtype=torch.float32)

def places2(grid: torch.Tensor, scale=2):
    grid = grid.abs() + 0
    found = []
    for n in grid.tolist():
        for k in range(n):
            found.extend(torch.arange(k * scale).unique().tolist())
        for k in grid.nonzero().tolist():
            found.append(k[0])
    return torch.tensor(found, dtype=torch.float32)

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def places(self, grid: torch.Tensor, scale=2):
        grid = grid.abs() + 0
        found = []
        for n in grid.tolist():
            for k in range(n):
                found.extend(torch.arange(k * scale).unique().tolist())
            for k in grid.nonzero().tolist():
                found.append(k[0])
        return torch.tensor(found, dtype=torch.float32)

    def forward(self, x, rows):
        return self.lin(x).sum() + call(places, grid=rows, scale=3) + call(self.places, grid=rows, scale=3, size=4)+ spec(places2, grid=rows, scale=3) + spec(self.places, grid=rows, scale=3, size=4)

# run
def make(): return Rows()
calls = [(torch.ones(2, 2), torch.tensor([1, 4]))]
