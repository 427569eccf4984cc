"""The rows are the first ones of what is written to: that they overlap is an error, and stays one."""

import torch
from torch import nn


class Repeat(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)

    def forward(self, ids, features, copies: bool = True):
        h = self.embed(ids).clone()
        rows = features if copies else h
        slots = ids == 7
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)
        return h


# run
def make():
    return Repeat()


calls = [(torch.full((2, 3), 7), torch.ones(6, 4)), (torch.full((2, 3), 7), torch.ones(6, 4), False)]
