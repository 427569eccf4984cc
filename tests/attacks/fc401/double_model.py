"""A model in double precision: single precision zeros do not take double rows, which is an error and stays one."""

import torch
from torch import nn


class Scatter(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(3, 4)

    def forward(self, ids, features):
        h = torch.zeros(ids.shape[0], ids.shape[1], 4)
        slots = ids == 7
        rows = self.proj(features)
        h[slots] = rows
        return h


# run
def make():
    return nn.ModuleList([Scatter(), Scatter().double()])


ids = torch.tensor([[1, 7, 3], [7, 7, 2]])
calls = [lambda m: m[0](ids, torch.ones(3, 3)), lambda m: m[1](ids, torch.ones(3, 3).double())]
