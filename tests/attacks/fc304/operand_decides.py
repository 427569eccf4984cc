"""What is added has a way of its own to be added to a tensor."""

import torch
from torch import nn


class Offset:
    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        args = [a.value if isinstance(a, cls) else a for a in args]
        return func(*args, **(kwargs or {}))

    def __radd__(self, other):
        return other + self.value * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Buffer(torch.zeros(2))

    def forward(self, x, offset):
        self.level += offset
        self.level += 1
        return x + self.level


# run
def make():
    return Net()


calls = [(torch.ones(2), 3), (torch.ones(2), Offset(1.5))]
