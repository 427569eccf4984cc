"""Rows of a single number are spread over the width, and none are spread over nothing."""

import torch
from torch import nn


class Images(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.proj = nn.Linear(3, width)

    def forward(self, ids, features):
        h = self.embed(ids).clone()
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)
        return h


# run
def make():
    return nn.ModuleList([Images(1), Images(4), Images(2)])


ids = torch.tensor([[1, 7, 3], [7, 7, 2]])
calls = [lambda m: m[0](ids, torch.ones(3, 3)), lambda m: m[0](ids, torch.ones(1, 3)), lambda m: m[2](ids, torch.ones(3, 3))]
