"""Functions that a star import brings along are called like names that the tool likes."""

import torch
from torch import nn

from layout import *


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.proj = nn.Linear(3, 4)

    def forward(self, ids, features):
        h = self.embed(ids).clone()
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)
        return _index(_rows(h), 0)


# run
def make():
    return Net()


calls = [(torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 3))]
