"""What the last turn leaves in the name is asked below the loop."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    def forward(self, x):
        return self.lin(x).relu()


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        self.last = type(block).__name__
        return x


def script(x):
    model = Stack()
    for i in range(len(model.blocks)):
        model.blocks[i] = torch.compile(model.blocks[i], backend="eager")
    return model(x), model.last


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
