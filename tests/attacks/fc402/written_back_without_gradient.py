"""Values are halved where they are negative and written back, in a view of a larger tensor."""

import torch
from torch import nn


class Halve(nn.Module):
    def forward(self, x):
        y = x.clone() * 2.0
        part = y[..., 1:]
        low = part < 0
        part[low] = part[low] / 2
        low = y < 0
        y[low] = y[low] * 0.5
        return y


# run
def make():
    return Halve()


train = True
calls = [(torch.randn(3, 4, requires_grad=True),), (torch.randn(4),), (torch.zeros(0, 2),)]
