"""The list is no ModuleList of PyTorch: what gets a list looks at what is in it."""

import torch
from torch import nn


class ModuleList(nn.ModuleList):
    def __setitem__(self, i, block):
        self.kinds = [*getattr(self, "kinds", []), type(block).__name__]
        super().__setitem__(i, block)


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
        self.blocks = ModuleList([Block() for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def script(x):
    model = Stack()
    for i in range(len(model.blocks)):
        model.blocks[i] = torch.compile(model.blocks[i], backend="eager")
    return model(x), model.blocks.kinds


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
