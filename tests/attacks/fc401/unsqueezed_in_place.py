"""One dimension more, in place and under another name, between mask and write."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        h = x * 2
        low = h < 0
        z = h.abs()
        for t in (h, z):
            t.unsqueeze_(-1)
        h[low] = z[low]
        return h


# run
def make():
    return Net()


calls = [(torch.randn(3, 4),), (torch.randn(1),)]
