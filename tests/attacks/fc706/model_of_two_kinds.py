"""One of two models, one of which has no blocks."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return x + self.lin(x).relu()


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x)


def script(x, deep=False):
    model = Stack() if deep else Plain()
    model.compile(backend="eager")
    return model(x)


# run
make = lambda: script
unsafe = True
tolerance = 1e-6
calls = [(torch.ones(3, 2),)]
