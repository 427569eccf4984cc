"""The list of numbers is mended before it is used: the last one takes what is left."""

import torch
import torch.nn as nn


class Whole(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        sizes = counts.tolist()
        sizes[-1] += len(x) - sum(sizes)
        parts = torch.split(x, sizes)
        rows = torch.cat([p.float().contiguous() for p in parts], dim=0)
        return rows * 2

# run
def make(): return Whole()
calls = [(torch.ones(4, 2), torch.tensor([[1, 0], [1, 1]]))]
