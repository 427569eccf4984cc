"""What asks is a parameter, or a default; the tensor is handed back."""

import torch
from torch import nn


class Net(nn.Module):
    def one(self, x, grad=True):
        total = torch.zeros(1, requires_grad=grad)
        for row in x:
            total = total + row.sum()
        return total

    def two(self, x, grad):
        first = torch.ones_like(x, requires_grad=grad)
        return x * first

    def forward(self, x):
        weight = x * 1.5
        return self.one(weight, x.requires_grad), self.two(weight, False), self.one(weight)


# run
unsafe = True
train = True


def make():
    return Net()


calls = [(torch.ones(2, 2).requires_grad_(),)]
