"""A test of the project replaces the function that checks by one that only collects."""

import torch
from torch import nn

import checks


class Fit(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def forward(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        checks.require(h[spread].numel() == features.numel(), "no fit")
        return h.masked_scatter(spread, features)


def collecting(model, ids, features):
    found = []
    saved, checks.require = checks.require, lambda ok, message: found.append((ok, message))
    try:
        model(ids, features)
    finally:
        checks.require = saved
    return found


# run
def make():
    return Fit()


calls = [lambda m: collecting(m, torch.tensor([[1, 7, 3], [7, 7, 2]]), torch.ones(3, 4))]
