"""A length has an equality of its own, which tells how far apart the two are."""

import torch
import torch.nn.functional as F
from torch import nn


class Length:
    def __init__(self, n):
        self.n = n

    def __eq__(self, other):
        return Distance(abs(self.n - other))


class Distance:
    def __init__(self, d):
        self.d = d

    def __bool__(self):
        return self.d == 0


class Attend(nn.Module):
    def forward(self, q, k, causal):
        return F.scaled_dot_product_attention(q, k, k, is_causal=bool(causal)), getattr(causal, "d", None)


class Net(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.length = length
        self.attend = Attend()

    def forward(self, q, k):
        return self.attend(q, k, causal=self.length == k.shape[2])


# run
def make():
    return nn.ModuleList([Net(3), Net(Length(5))])


q = torch.randn(1, 1, 3, 4)
calls = [lambda m: [part(q, q) for part in m]]
