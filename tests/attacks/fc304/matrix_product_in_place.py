"""A product of matrices that is assigned in place, a power, a remainder, a shift."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Buffer(torch.eye(2) * 2)
        self.level = nn.Buffer(torch.full((2,), 3.0))
        self.bits = nn.Buffer(torch.tensor([5, 9]))

    def forward(self, x):
        self.turn @= torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
        self.level **= 2
        self.level %= 5
        self.level //= 1.5
        self.bits <<= 1
        self.bits |= 4
        self.bits ^= 1
        self.bits -= 2
        return x @ self.turn + self.level + self.bits


# run
def make():
    return Net()


calls = [(torch.ones(2),), (torch.ones(2),), (torch.ones(2),)]
