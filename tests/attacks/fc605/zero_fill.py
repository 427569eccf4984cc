"""Bounds in any order, beyond the end, counted from it, and none: the same places get the same number."""

import torch
from torch import nn


class Blocks(nn.Module):
    def forward(self, x, bounds: torch.Tensor):
        n = x.shape[0]
        mask = torch.full([1, n, n], torch.finfo(x.dtype).min, dtype=x.dtype, device=x.device)
        for i in range(1, len(bounds)):
            mask[..., bounds[i - 1] : bounds[i], bounds[i - 1] : bounds[i]] = 0
        return mask


# run
def make():
    return Blocks()


x = torch.randn(5, 3)
calls = [(x, torch.tensor(b)) for b in ([0, 2, 5], [2, 2, 9], [-3, -1, 4], [4, 1], [0], [-9, 3], [1, -1, 2])]
calls += [(x.half(), torch.tensor([0, 2, 5])), (x, torch.zeros(0, dtype=torch.long)), (x[:0], torch.tensor([0, 1])), (x, torch.tensor([0, 2, 5], dtype=torch.int32)), (x, torch.tensor(3))]
