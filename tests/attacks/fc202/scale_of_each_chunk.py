"""Each chunk is scaled by what it holds."""

import torch
import torch.nn as nn


class Whole(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.clamp(max=p.mean()) for p in parts], dim=0)
        more = torch.cat([p.float().softmax(0) for p in parts], dim=0)
        last = torch.cat([p.cumsum(0) for p in parts], dim=0)
        return rows * 2 + more + last

# run
def make(): return Whole()
calls = [(torch.arange(6.0).view(3, 2), torch.tensor([[1, 0], [1, 1]]))]
