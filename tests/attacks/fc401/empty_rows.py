"""No rows at all, no places at all, one row for no place, too many rows: the same results and the same errors."""

import torch
from torch import nn


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(16, 4)
        self.proj = nn.Linear(3, 4)

    def forward(self, ids, features):
        h = self.embed(ids).clone()
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)
        return h


# run
def make():
    return Images()


train = True
calls = [
    (torch.zeros(0, 3, dtype=torch.long), torch.ones(0, 3)),
    (torch.zeros(2, 3, dtype=torch.long), torch.ones(1, 3)),
    (torch.zeros(2, 3, dtype=torch.long), torch.ones(2, 3)),
    (torch.full((2, 2), 7), torch.ones(0, 3)),
    (torch.full((2, 2), 7), torch.ones(3, 3)),
    (torch.full((1, 1), 7), torch.arange(3.0).view(1, 3)),
    (torch.tensor(7), torch.ones(1, 3)),
    (torch.tensor(7), torch.ones(2, 3)),
    (torch.tensor(7), torch.ones(0, 3)),
    (torch.tensor(6), torch.ones(1, 3)),
    (torch.full((2, 0), 7), torch.ones(1, 3)),
    (torch.full((2, 2), 7), torch.ones(2, 2, 3)),
]
