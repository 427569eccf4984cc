"""The mask is changed behind autograd's back: backward fails, or not, as it did."""

import torch
from torch import nn

import numpy as np


class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)

    def forward(self, ids, features, fill):
        h = self.embed(ids).clone()
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)
        if fill:
            np.asarray(slots)[...] = True
        return h


# run
def make():
    return Merge()


calls = [(torch.tensor([[7, 1, 7]]), torch.ones(2, 4), fill) for fill in (False, True)]
train = True
