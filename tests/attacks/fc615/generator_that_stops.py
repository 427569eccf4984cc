"""A generator has run up to the element that cannot be multiplied."""

import math
import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor, dims):
        x = torch.relu(x)
        seen = []
        def one(d):
            seen.append(d)
            return d
        try:
            n = math.prod(one(d) for d in dims)
        except TypeError:
            n = len(seen)
        return x * n

# run
def make(): return Net()
calls = [(torch.ones(2, 3, 4), [2, 3]), (torch.ones(2), [2, None, 3, 4])]
