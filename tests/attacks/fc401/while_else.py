"""The values are made in the else of a loop that may break: then they have one dimension more."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, x):
        n = 0
        h = x * 1
        low = x < 0
        while n < self.limit:
            n += 1
            if n == x.shape[0]:
                h = torch.stack([h, h], -1)
                break
            h = h + 1
        else:
            h = h * 2
        z = h.abs()
        h[low] = z[low]
        return h


# run
def make():
    return Net(3)


calls = [(torch.randn(5, 4),), (torch.randn(2, 3),), (torch.randn(2, 2),)]
