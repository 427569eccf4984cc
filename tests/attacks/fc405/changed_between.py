"""The places were taken before the values changed, through a second name and in a function."""

import torch
from torch import nn


class Close(nn.Module):
    def open(self, mask):
        mask[0] = True

    def forward(self, x):
        closed = torch.logical_not(x)
        all_closed = closed.sum(-1) == closed.shape[-1]
        places = torch.where(all_closed)
        self.open(all_closed)
        closed[places] = False
        return closed


# run
def make():
    return Close()


calls = [(torch.zeros(2, 3),), (torch.ones(2, 3),)]
