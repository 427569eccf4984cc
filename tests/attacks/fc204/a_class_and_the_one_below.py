"""Two classes of one family: what is taken out of a method of the one must not become a method of the other."""

import torch
import torch.nn as nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.step = 3

    def nothing(self, rows):
        raise NotImplementedError

    def spans(self, x, rows):
        x = self.lin(x)
        ends = []
        for n in rows.tolist():
            ends.extend(torch.arange(n * self.step).tolist())
        return x, ends


class Sub(Base):
    def nothing(self, rows):
        rows = rows + self.step
        for n in rows.tolist():
            rows = rows + torch.arange(n * self.step).sum()
        return rows

    def forward(self, x, rows):
        x = self.lin(x)
        ends = [self.spans(x, rows), self.nothing(rows)]
        for n in rows.tolist():
            ends.extend(torch.arange(n + self.step).tolist())
        return x, ends

# run
def make(): return Sub()
calls = [(torch.ones(2, 2), torch.tensor(rows)) for rows in ([2, 3], [1, 4])]
unsafe = True
