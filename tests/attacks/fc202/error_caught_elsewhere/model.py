"""A caller in another file goes on with the whole when the sizes do not add up."""

import torch
import torch.nn as nn


class Whole(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.float().contiguous() for p in parts], dim=0)
        return rows * 2

# run
from outer import Outer
def make(): return Outer(Whole())
calls = [(torch.ones(3, 2), torch.tensor([[1, 0], [1, 1]])), (torch.ones(3, 2), torch.tensor([[1, 0], [0, 1]]))]
