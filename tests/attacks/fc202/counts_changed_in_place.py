"""The counts are clamped after the numbers were read, through another name."""

import torch
import torch.nn as nn


class Whole(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        sizes = counts.tolist()
        left = counts.view(-1)
        left.sub_(1)
        parts = torch.split(x, sizes)
        rows = torch.cat([p.float().contiguous() for p in parts], dim=0)
        return rows * 2, left

# run
def make(): return Whole()
calls = [(torch.ones(3, 2), torch.tensor([[1, 0], [1, 1]]))]
