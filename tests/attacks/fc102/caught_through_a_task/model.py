"""A task of another file is asked for its exception; the default is taken in its place."""

import torch
import torch.nn as nn


class Features(nn.Module):
    def forward(self, x):
        return features(x)


def features(x):
    if (x.abs() > 10).any():
        raise ValueError("out of range")
    return x.sin()

# run
from tasks import mapped
def make(): return lambda *xs: mapped(xs)
calls = [(torch.ones(2), torch.full((2,), 20.0))]
