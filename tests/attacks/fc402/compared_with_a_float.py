"""As many as a share of the places: the number on the other side has a fraction."""

import torch
from torch import nn


class Enough(nn.Module):
    def __init__(self, share: float):
        super().__init__()
        self.share = share

    def forward(self, x):
        n = x.long() * 2
        big = n > 4
        if n[big].numel() < 1:
            raise ValueError("nothing")
        if n[big].shape[0] != int(x.shape[0] * self.share):
            raise ValueError("not the share")
        return n


# run
def make():
    return Enough(0.7)


calls = [(torch.arange(10),), (torch.zeros(3),), (torch.tensor([5, 6, 7, 8, 9, 9, 9, 0, 0, 0]),)]
