"""Counts of two dimensions are no sizes; negative ones neither; one number alone means chunks of that size."""

import torch
import torch.nn as nn


class Whole(nn.Module):
    def forward(self, x, counts: torch.LongTensor):
        counts = counts.long()
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.float().contiguous() for p in parts], dim=0)
        return rows * 2

# run
def make(): return Whole()
calls = [(torch.ones(4, 2), torch.tensor(v)) for v in ([1, 3], [[1, 3]], [5, -1], 2, [4], [], [0, 4])]
