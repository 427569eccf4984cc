"""How many places there are, in values that a loop may have given another dimension."""

import torch
from torch import nn


def require(ok, message):
    if not ok:
        raise ValueError(message)


class Fit(nn.Module):
    """Features for places."""

    def __init__(self, turns: int):
        super().__init__()
        self.turns = turns
        self.embed = nn.Embedding(16, 4)

    def forward(self, ids, features):
        h = self.embed(ids)
        slots = ids == 7
        for _ in range(self.turns):
            h = torch.stack([h, h], -1)
        if h[slots].shape[0] != features.shape[0]:
            raise ValueError("rows")
        if h[slots].numel() != features.shape[0] * 4:
            raise ValueError("numbers")
        return h * 2


# run
def make():
    return nn.ModuleList([Fit(0), Fit(1)])


ids = torch.tensor([[1, 7, 3], [7, 7, 2]])
calls = [lambda m: m[0](ids, torch.ones(3, 4)), lambda m: m[1](ids, torch.ones(3, 4)), lambda m: m[0](ids, torch.ones(2, 4))]
