"""What is infinite in one chunk is nothing to the others, in compiled code as well."""

import torch
import torch.nn.functional as F
from torch import nn


class Blocks(nn.Module):
    def forward(self, q, k, v, bounds):
        lengths = bounds[1:] - bounds[:-1]
        splits = [torch.split(t, lengths.tolist(), dim=2) for t in (q, k, v)]
        outs = [F.scaled_dot_product_attention(a, b, c, attn_mask=None) for a, b, c in zip(*splits)]
        return torch.cat(outs, dim=2)


# run
def make():
    return Blocks()


unsafe = True
tolerance = 1e-5
q = torch.randn(1, 2, 5, 4)
v = q.clone()
v[:, :, 0] = float("inf")
k = q.clone()
k[:, :, 4] = float("nan")
calls = [(q, q, q, torch.tensor([0, 2, 5])), (q, q, v, torch.tensor([0, 2, 5])), (q, k, q, torch.tensor([0, 2, 5])), (q, q, q, torch.tensor([0, 2, 4]))]
