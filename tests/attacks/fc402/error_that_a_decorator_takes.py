"""A decorator takes the error of the check: compiled code must leave it something to take."""

import torch
from torch import nn

import functools


def forgiving(function):
    @functools.wraps(function)
    def inner(self, ids, rows):
        try:
            return function(self, ids, rows)
        except RuntimeError:
            return rows

    return inner


def require(ok, message):
    if torch.is_tensor(ok):
        torch._assert_async(ok.all(), message)
    else:
        torch._check(ok, lambda: message)


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    @forgiving
    def forward(self, ids: torch.Tensor, rows: torch.Tensor):
        h = self.embed(ids)
        require(h[ids == 7].shape[0] == rows.shape[0], "rows must fit the places")
        return h


# run
def make():
    return Rows()


calls = [(torch.tensor([[7, 1, 7]]), torch.ones(n, 4)) for n in (2, 3)]
