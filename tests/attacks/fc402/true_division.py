"""True division of whole numbers gives floats, which are not written to whole numbers: an error that stays."""

import torch
from torch import nn


class Halve(nn.Module):
    def forward(self, x, whole: bool = False):
        n = x.long() * 2 if whole else x * 2
        big = n > 4
        n[big] = n[big] / 2
        return n


# run
def make():
    return Halve()


calls = [(torch.arange(6.0),), (torch.arange(6.0), True)]
