"""What a function takes is asked through a wrapper, or of the wrapper itself: the first alone is the same."""

import inspect

import torch
import torch.nn as nn

from call import itself, length, method


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def places(self, grid, scale=2):
        grid = grid.abs() + 0
        found = []
        for n in grid.tolist():
            for k in range(n):
                found.extend(torch.arange(k * scale).unique().tolist())
            for k in grid.nonzero().tolist():
                found.append(k[0])
        return torch.tensor(found, dtype=torch.float32)

    def longer(self, grid, scale=3):
        grid = grid.abs() + 1
        found = []
        for n in grid.tolist():
            for k in range(n):
                found.extend(torch.arange(k * scale).unique().tolist())
            for k in grid.nonzero().tolist():
                found.append(k[0])
        return torch.tensor(found, dtype=torch.float32)

    def direct(self, grid, scale=4):
        grid = grid.abs() + 2
        found = []
        for n in grid.tolist():
            for k in range(n):
                found.extend(torch.arange(k * scale).unique().tolist())
            for k in grid.nonzero().tolist():
                found.append(k[0])
        return torch.tensor(found, dtype=torch.float32)

    def forward(self, x, rows):
        taken = len(inspect.signature(self.places).parameters)
        found = self.places(rows, taken), self.longer(rows), self.direct(rows)
        return self.lin(x).sum(), found, method(self, grid=rows, scale=3, size=4), length(self), itself(self)


# run
def make():
    return Rows()


calls = [(torch.ones(2, 2), torch.tensor([1, 4]))]
