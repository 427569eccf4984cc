"""A list of a part of the model, which the model asks for its types."""

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
        return x


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.stack = Stack()

    def forward(self, x):
        return self.stack(x), [type(b).__name__ for b in self.stack.blocks]


def script(x):
    model = Whole()
    for i in range(len(model.stack.blocks)):
        model.stack.blocks[i] = torch.compile(model.stack.blocks[i], backend="eager")
    return model(x)


# run
make = lambda: script
calls = [(torch.ones(3, 2),)]
