"""An element-wise method with an argument that has the shape of one chunk."""

import torch
import torch.nn as nn


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("place", torch.arange(4.0).view(2, 2))

    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.add(self.place) for p in parts], dim=0)
        return rows * 2

# run
def make(): return Whole()
calls = [(torch.ones(4, 2), torch.ones(2, 2, dtype=torch.long))]
