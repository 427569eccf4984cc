"""The error of one picture is caught in the caller, with what was found until then."""

import torch
import torch.nn as nn


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def positions(self, x, grid, found):
        x = self.lin(x)
        for height, width in grid.tolist():
            found.append(torch.arange(height * width))
            if height > 4:
                raise ValueError(f"{height} rows")
        total = grid.sum().item()
        return x * total

    def forward(self, x, grid):
        found = []
        try:
            x = self.positions(x, grid, found)
        except ValueError as error:
            x = x * len(str(error))
        else:
            x = x + 1
        finally:
            found.append(x.sum())
        return x, found

# run
def make(): return Vision()
calls = [(torch.ones(2, 2), torch.tensor(g)) for g in ([[2, 3], [1, 4]], [[5, 1], [1, 1]])]
unsafe = True
