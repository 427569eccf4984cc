"""A flag from a chain of comparisons, one that moves a counter on, and one that is asked again."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def seen(self, k):
        self.calls += 1
        return k.shape[2]

    def forward(self, q, k):
        causal = 1 < q.shape[2] == self.seen(k)
        out = F.scaled_dot_product_attention(q, k, k, is_causal=causal)
        return out, causal, F.scaled_dot_product_attention(q, k, k, is_causal=self.seen(k) != q.shape[2] + self.calls)


# run
def make():
    return Net()


q = torch.randn(1, 1, 3, 4)
calls = [(q, q), (q[:, :, :1], q[:, :, :1]), (q, q[:, :, :2])]
