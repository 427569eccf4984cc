"""The second tensor has another shape when the first test fails: it is not looked at then."""

import torch
import torch.nn as nn


class Pairs(nn.Module):
    def forward(self, a, b):
        same = torch.tensor(a.shape == b.shape)
        if same and (a > b).any():
            raise ValueError("a above b")
        if a.shape == b.shape and (a == b).all():
            raise ValueError("equal")
        if b is None or (b < 0).any():
            raise ValueError("below 0")
        return a.sum() + b.sum()

# run
def make(): return Pairs()
calls = [(torch.ones(2), torch.ones(3)), (torch.ones(2), torch.ones(2) * 2), (torch.ones(2), torch.ones(2)), (torch.ones(2), -torch.ones(3))]
