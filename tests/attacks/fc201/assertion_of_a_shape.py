"""``assert t.item()`` is an error for more than one element, and NaN is true."""

import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        ok = x.amax(-1)
        assert ok.item()
        assert (x == x).all().item()
        return x * 2

# run
def make(): return Net()
calls = [(torch.ones(1, 3),), (torch.ones(2, 3),), (torch.zeros(1, 3),), (torch.full((1, 3), float("nan")),), (torch.ones(3),)]
