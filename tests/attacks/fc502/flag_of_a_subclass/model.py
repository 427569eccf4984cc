"""A subclass in another file keeps the flag, and hands out a mask in its place."""

import torch
import torch.nn.functional as F
from torch import nn


class Attend(nn.Module):
    def flag(self, q, k):
        return q.shape[2] == k.shape[2]

    def forward(self, q, k):
        causal = self.flag(q, k)
        return F.scaled_dot_product_attention(q, k, k, is_causal=causal)


# run
from other import Masked
def make():
    return nn.ModuleList([Attend(), Masked()])


q = torch.randn(1, 1, 3, 4)
calls = [lambda m: m[0](q, q), lambda m: m[1](q, q[:, :, :2]), lambda m: m[1](q, q)]
