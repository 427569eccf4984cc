"""A dictionary that is emptied when it is full, names that are taken, a key in two spellings, two lookups in a row."""

import torch
from torch import nn


KEPT = {}
OTHER = {}


class Grid(nn.Module):
    def forward(self, x, cached=1):
        h, w = x.shape[-2:]
        if (h, w) not in KEPT:
            rows = torch.arange(h, device=x.device)
            KEPT[(h, w)] = rows[:, None] * torch.arange(w, device=x.device)
        grid = KEPT[h, w]
        found = OTHER.get(h)
        if found is None:
            found = torch.arange(h, device=x.device)[:, None] * cached
            OTHER[h] = found
        return x + grid + found


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = Grid()

    def forward(self, x):
        y = self.grid(x)
        KEPT.clear()
        return self.grid(y)


# run
unsafe = True
compiled = True


def make():
    return Net()


calls = [(torch.ones(2, h, w),) for h, w in ((3, 4), (4, 5), (5, 4), (3, 4), (6, 2))]
