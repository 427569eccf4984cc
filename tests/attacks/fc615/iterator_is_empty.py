"""What ends an iterator is another error inside of a generator than in a list: a loop takes it for its own end."""

import math

import torch
import torch.nn as nn


class Areas:
    """Products of neighbours; an odd number of sizes is an error."""

    def __init__(self, sizes):
        self.sizes = iter(sizes)
        self.left = len(sizes)

    def __iter__(self):
        return self

    def __next__(self):
        if self.left <= 0:
            raise StopIteration
        self.left -= 2
        return math.prod(next(self.sizes) for _ in range(2))


class Net(nn.Module):
    def forward(self, x, sizes):
        x = torch.relu(x)
        for area in Areas(sizes):
            x = x * area
        return x

# run
def make(): return Net()
calls = [(torch.ones(3), [2, 3]), (torch.ones(3), [2, 3, 4])]
