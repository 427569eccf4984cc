"""The other file hands tensors to what is written for sizes: a tensor of truth values comes back."""

import torch
import torch.nn.functional as F
from torch import nn


def same(a, b):
    return a == b


class Net(nn.Module):
    def forward(self, q, k):
        return F.scaled_dot_product_attention(q, k, k, is_causal=same(q.shape[2], k.shape[2]))


# run
from other import Compare
def make():
    return nn.ModuleList([Net(), Compare()])


q = torch.randn(1, 1, 3, 4)
calls = [lambda m: m[0](q, q), lambda m: m[1](q, q)]
