"""``configure`` of another file sets the names of a dict: one of them is the width."""

import torch
import torch.nn as nn

from settings import configure


def take(h, n):
    return h[:, :n].sum()


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.width = width

    def forward(self, x, **changes):
        width = torch.IntTensor([self.width])
        configure(self, changes)
        x = x + take(x, width[0])
        return x * torch.tensor(self.width, dtype=torch.int64).item()

# run
def make(): return Net(6)
calls = [((torch.ones(2, 8),), {}), ((torch.ones(2, 8),), {"width": 3})]
