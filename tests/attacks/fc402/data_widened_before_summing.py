"""Each value stands twice by then, behind the dimensions of the mask."""

import torch
from torch import nn


def doubled(n):
    n.data = torch.stack([n, n], -1)


class Count(nn.Module):
    def forward(self, x):
        n = x.long() * 2
        big = n > 4
        doubled(n)
        return n[big].sum()


# run
def make():
    return Count()


calls = [(torch.arange(8),), (torch.arange(2),)]
