"""Leaves that are asked whether they need gradients, changed under no_grad, and shared by two names."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        first = torch.zeros(3, requires_grad=True)
        needs = first.requires_grad
        second = torch.ones(3, requires_grad=True)
        with torch.no_grad():
            second[0] = 2
        third = fourth = torch.ones(3, requires_grad=True)
        fifth = torch.zeros(3, requires_grad=True)
        y = self.lin(x) * second + third * fourth + fifth
        return y + 1 if needs and y.requires_grad else y


# run
unsafe = True
train = True


def make():
    return Net()


calls = [(torch.linspace(0, 1, 3),), (torch.linspace(0, 1, 6).reshape(2, 3),)]
