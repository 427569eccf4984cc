"""Noise is drawn chunk by chunk; the numbers depend on how many are drawn at once."""

import torch
import torch.nn as nn


class Noisy(nn.Module):
    def forward(self, x, ids: torch.LongTensor):
        counts = (ids != 0).sum(1)
        parts = torch.split(x, counts.tolist())
        rows = torch.cat([p.float().bernoulli() for p in parts], dim=0)
        return rows * 2

# run
def make(): return Noisy()
calls = [(torch.full((39, 2), 0.5), torch.ones(3, 13, dtype=torch.long))]
