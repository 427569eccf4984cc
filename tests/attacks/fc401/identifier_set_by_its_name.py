"""What the ids are compared with is set by a call, to nothing: the mask is a bool then."""

import torch
from torch import nn

TURNS = []


class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)
        self.proj = nn.Linear(4, 4)

    def forward(self, ids, features):
        TURNS.append(1)
        if len(TURNS) % 2:
            setattr(self, "picture", None)
        filled = self.embed(ids).clone()
        rows = self.proj(features)
        filled[ids == self.picture] = rows.reshape(-1, rows.shape[-1]).type_as(filled)
        return filled


# run
def make():
    TURNS.clear()
    return Merge()


ids = torch.tensor([[1, 7, 3, 4], [7, 2, 7, 5]])
calls = [(ids, torch.ones(1, 4)), (ids, torch.ones(3, 4)), (ids, torch.ones(1, 4))]
