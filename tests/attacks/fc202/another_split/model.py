"""``split`` comes from another file: it leaves out the last row of each chunk."""

import torch
import torch.nn as nn

from ops import split


class Whole(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        parts = split(x, counts.tolist())
        rows = torch.cat([p.float().contiguous() for p in parts], dim=0)
        return rows * 2

# run
def make(): return Whole()
calls = [(torch.arange(6.0).view(3, 2), torch.tensor([[1, 0], [1, 1]]))]
