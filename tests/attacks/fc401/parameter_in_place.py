"""Unused rows of a table are written anew, without gradients; the table stays the same parameter."""

import torch
from torch import nn


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 3))

    def forward(self, x):
        used = torch.cdist(x, self.table).argmin(-1)
        counts = torch.bincount(used, minlength=4)
        dead = self.table.sum(-1) < counts.min()
        with torch.no_grad():
            fresh = self.table * -2
            self.table[dead] = fresh[dead]
        return self.table[used]


# run
def make():
    return Codes()


train = True
calls = [(torch.randn(3, 3),), (torch.randn(2, 3),)]
