"""What one method counts, another one has made an array or a tensor of: the operator takes no such flag."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, q, k, offset=None):
        if offset is None:
            offset = k.shape[2] - q.shape[2]
        if self.kind == "array":
            offset = np.array(offset)
        elif self.kind == "tensor":
            offset = torch.tensor([offset])
        return self.attention(q, k, offset)

    def attention(self, q, k, offset):
        return scaled_dot_product_attention(q, k, k, is_causal=offset == 0)


# run
def make():
    return nn.ModuleDict({kind: Net(kind) for kind in ("plain", "array", "tensor")})


Q = torch.linspace(-1, 1, 24).reshape(1, 2, 3, 4)
calls = [lambda nets, kind=kind: nets[kind](Q, Q) for kind in ("plain", "array", "tensor")]
