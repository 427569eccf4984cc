"""Sizes of numpy's are compared: what comes back is numpy's truth value."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Attend(nn.Module):
    def forward(self, q, k, causal):
        return F.scaled_dot_product_attention(q, k, k, is_causal=bool(causal)), causal


class Net(nn.Module):
    def __init__(self, length: int):
        super().__init__()
        self.length = length
        self.attend = Attend()

    def forward(self, q, k):
        out, causal = self.attend(q, k, causal=q.shape[2] == self.length)
        plain = F.scaled_dot_product_attention(q, k, k, is_causal=q.shape[2] == k.shape[2])
        return out, causal, plain


# run
def make():
    return nn.ModuleList([Net(3), Net(np.int64(3))])


q = torch.randn(1, 1, 3, 4)
calls = [lambda m: [part(q, q) for part in m]]
