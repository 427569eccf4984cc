"""A decorator takes the error of rows that do not fit: compiled code must leave it something to take."""

import functools

import torch
from torch import nn


def forgiving(function):
    @functools.wraps(function)
    def inner(self, ids, features):
        try:
            return function(self, ids, features)
        except RuntimeError:
            return features

    return inner


class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)

    @forgiving
    def forward(self, ids, features):
        h = self.embed(ids).clone()
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)
        return h


# run
def make():
    return Merge()


calls = [(torch.tensor([[7, 1, 7]]), torch.ones(n, 4)) for n in (2, 3)]
