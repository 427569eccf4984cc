"""A function that says things once is cached; what it returns is needed each time."""

import functools

import torch
from torch import nn


@functools.lru_cache(maxsize=None)
def note(rows):
    print("rows", rows)
    return rows * 2


class Net(nn.Module):
    def forward(self, x):
        n = note(x.shape[0])
        print("twice", note(x.shape[0] + 1))
        return x * n + note.cache_info().currsize


# run
def make():
    note.cache_clear()
    return Net()


calls = [(torch.ones(2),), (torch.ones(2),), (torch.ones(3),)]
