"""What runs through the items is no function of Python: it looks at what they are."""

import torch
from torch import nn

KINDS = []


def reversed(blocks):
    KINDS.extend(type(block).__name__ for block in blocks)
    return list(blocks)[::-1]


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
        for block in reversed(self.blocks):
            x = block(x)
        return x


def script(x):
    KINDS.clear()
    model = Stack()
    for i in range(len(model.blocks)):
        model.blocks[i] = torch.compile(model.blocks[i], backend="eager")
    return model(x), KINDS


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
