"""``super()`` and a private name in what is moved into a function of its own."""

import torch
import torch.nn as nn


class Base(nn.Module):
    def merge(self):
        return 2


class Vision(Base):
    def __init__(self):
        super().__init__()
        self.__offset = 3
        self.lin = nn.Linear(2, 2)

    def merge(self):
        return 1

    def positions(self, x, grid):
        x = self.lin(x).tanh()
        found = []
        for height, width in grid.tolist():
            found.append(torch.arange(height * width) // super().merge() + self.__offset)
        longest = grid.max().item()
        return torch.cat(found) / longest, __class__.__name__, x

    def __places(self, grid):
        return [torch.arange(n) for n in grid.sum(-1).tolist()], grid.min().item()

    def forward(self, x, grid):
        places, name, x = self.positions(x, grid)
        return places, name, self.__places(grid), x

# run
def make(): return Vision()
calls = [(torch.ones(2, 2), torch.tensor([[2, 3], [1, 4]]))]
unsafe = True
