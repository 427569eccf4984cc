"""The mask loses a row through a view, between the sum of all and the sum of some."""

import torch
from torch import nn


class Count(nn.Module):
    def forward(self, x):
        n = x.long() * 2
        big = n > 4
        first = n[big].sum()
        big[0] = False
        top = big.view(-1)
        top[-1] = False
        n[0] += 100
        return first, n[big].sum(), big


# run
def make():
    return Count()


calls = [(torch.arange(8),), (torch.arange(8).view(2, 4) + 3,)]
