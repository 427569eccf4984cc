"""An error that always comes is taken: what was bound before it is needed below."""

import contextlib

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(6, 6)

    @torch.no_grad()
    def positions(self, ids, mask):
        with contextlib.suppress(ValueError):
            out = torch.zeros(2, *ids.shape, dtype=torch.long)
            raise ValueError
        for row, words in enumerate(ids):
            words = words[mask[row].bool()]
            for column in range(len(words.tolist())):
                out[:, row, column] = column
        return out

    def forward(self, ids, mask):
        return self.lin(ids.float()) + self.positions(ids, mask).sum(0)


# run
def make():
    return Model()


ids = torch.tensor([[0, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]])
mask = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]])
calls = [(ids, mask), (ids + 1, mask)]
unsafe = True
