"""A size that NumPy made compares to a bool of NumPy's, which attention refuses."""

import torch
from torch import nn

import numpy as np
from torch.nn import functional as F


class Net(nn.Module):
    def forward(self, q, k, counted=False):
        new, total = q.size(2), k.size(2)
        if counted:
            new = np.int64(new)
        causal = new == total
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)


# run
def make():
    return Net()


def qk(n, m):
    return torch.arange(16.0 * n).view(2, 2, n, 4) / 100, torch.arange(16.0 * m).view(2, 2, m, 4).sin()


calls = [qk(3, 3), (*qk(3, 3), True), qk(1, 4)]
