"""torch.equal of shapes that differ is False; sizes are compared before."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, a, b, strict=True):
        if strict and a.shape == b.shape and (a != b).any():
            raise ValueError("not the same")
        if not strict and not (a.shape == b.shape and (a == b).all()):
            raise ValueError("not alike")
        return a.sum() + b.sum()


# run
def make():
    return Net()


ONE = torch.ones(3)
calls = [(ONE, ONE), (ONE, ONE * 2), (ONE, torch.ones(2)), (ONE, ONE, False), (ONE, ONE * 2, False), (ONE, torch.ones(2), False)]
