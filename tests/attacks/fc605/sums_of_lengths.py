"""Blocks between running sums of lengths; what float16 does not hold is an error where there is something to fill."""

import torch
import torch.nn.functional as F
from torch import nn


class Blocks(nn.Module):
    def forward(self, x, lengths):
        n = x.shape[0]
        bounds = F.pad(lengths.cumsum(0), (1, 0))
        mask = torch.full((1, n, n), torch.finfo(x.dtype).min, dtype=x.dtype, device=x.device)
        for i in range(1, len(bounds)):
            mask[..., bounds[i - 1] : bounds[i], bounds[i - 1] : bounds[i]] = 0
        far = torch.zeros((1, n, n), dtype=x.dtype, device=x.device)
        for i in range(1, len(bounds)):
            far[..., bounds[i - 1] : bounds[i], bounds[i - 1] : bounds[i]] = -1e9
        return mask, far


# run
def make():
    return Blocks()


x = torch.randn(5, 3)
half = [(x.half(), torch.tensor(b)) for b in ([2, 3], [0, 0], [9, -9])]
calls = [(x, torch.tensor([2, 3])), *half, (x.half(), torch.zeros(0, dtype=torch.long)), (x, torch.tensor([0.5, 2])), (x.bfloat16(), torch.tensor([1, 2]))]
