"""The values were cut in place, by a function of their own, after the mask was made for them."""

import torch
from torch import nn


def halved(n):
    n.resize_(n.shape[0] // 2)


class Count(nn.Module):
    def forward(self, x):
        n = (x.long() * 2).clone()
        big = n > 4
        halved(n)
        return n[big].sum()


# run
def make():
    return Count()


calls = [(torch.zeros(0),), (torch.arange(8),), (torch.arange(1),)]
