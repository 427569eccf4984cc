"""The mask is set anew when the write is done: a backward pass that kept it would fail."""

import torch
from torch import nn


class Kept:
    def __init__(self, value):
        self.value = value


class Blank(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def forward(self, ids):
        h = self.embed(ids) * 2
        blank = ids == 8
        kept = Kept(blank)
        if blank.any():
            h[blank] = 0
        kept.value.fill_(True)
        return h, blank


# run
def make():
    return Blank()


calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),)]
train = True
