"""Parts that do not need their instance: names of the class in annotations, private names, names of the module."""

import torch
import torch.nn as nn

_read_rows = 3
__scale = 2


class Rows(nn.Module):
    Size = int

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def named(self, x, grid, size: Size) -> Size:
        x = self.lin(x).relu()
        found = [n * size for n in grid.tolist()]
        return sum(found) + grid.max().item()

    def forward(self, x, rows):
        x = self.lin(x)
        ends = []
        for n in rows.tolist():
            ends.extend(torch.arange(n).tolist())
        return x, ends, _read_rows, self.named(x, rows, 2)


def outer(step):
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(2, 2)

        def forward(self, x, rows):
            x = self.lin(x)
            ends = []
            for n in rows.tolist():
                ends.extend((torch.arange(n) * step).tolist())
            return x, ends

    return Inner()


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Rows(), outer(5)

    def forward(self, x, rows):
        return self.first(x, rows), self.second(x, rows)

# run
def make(): return Both()
calls = [(torch.ones(2, 2), torch.tensor(rows)) for rows in ([2, 3], [1, 4])]
unsafe = True
