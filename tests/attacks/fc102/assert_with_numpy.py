"""Assertions on what may be an array, a number, or a tensor with gradients."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x, weight=None):
        assert x.ndim == 2 and (x >= 0).all(), f"bad input {tuple(x.shape)}"
        assert weight is None or (weight > 0).all() and weight.sum() > 1, f"weights {weight}"
        assert not torch.isnan(x).any(), "nan in %s" % (x.shape,)
        return x if weight is None else x * weight


# run
import numpy as np
def make():
    return Net()


X = torch.ones(2, 2)
calls = [(X,), (-X,), (X, X), (X, -X), (X[0],), (X * float("nan"),), (X, X * 0.1), (X, np.ones((2, 2), dtype=np.float32))]
