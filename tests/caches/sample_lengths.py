"""Ragged batches: every sample has a length of its own, so how much is written is itself tensor data."""

from __future__ import annotations

import torch
import torch.nn as nn

REFUSED = "tensor data"


class RaggedCache:
    """Keys and values (batch, place, width), filled up to ``lengths[i]`` in sample i."""

    keys: torch.Tensor
    values: torch.Tensor
    lengths: torch.Tensor

    def __init__(self, batch: int, room: int, width: int) -> None:
        self.keys = torch.zeros(batch, room, width)
        self.values = torch.zeros(batch, room, width)
        self.lengths = torch.zeros(batch, dtype=torch.long)

    def append(self, keys: torch.Tensor, values: torch.Tensor, counts: torch.Tensor) -> None:
        """The first ``counts[i]`` of the new rows belong to sample i; the rest is padding."""
        for i in range(keys.shape[0]):
            start = int(self.lengths[i].item())
            stop = start + int(counts[i].item())
            self.keys[i, start:stop] = keys[i, : stop - start]
            self.values[i, start:stop] = values[i, : stop - start]
        self.lengths += counts

    def mask(self) -> torch.Tensor:
        """(batch, place), true where something was written."""
        return torch.arange(self.keys.shape[1], device=self.keys.device) < self.lengths[:, None]

    def longest(self) -> int:
        return int(self.lengths.max().item())


class RaggedAttention(nn.Module):
    def __init__(self, width: int = 8):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, counts: torch.Tensor, cache: RaggedCache) -> torch.Tensor:
        cache.append(self.key(x), self.value(x), counts)
        scores = self.query(x) @ cache.keys.mT
        scores = scores.masked_fill(~cache.mask()[:, None], float("-inf"))
        return x + scores.softmax(-1) @ cache.values


def build():
    return RaggedAttention().eval()


def one_round(model, batch):
    cache = RaggedCache(batch, 40, 8)
    counts = torch.arange(1, batch + 1) + 2
    x = torch.linspace(-1, 1, batch * 6 * 8).view(batch, 6, 8)
    outputs = [model(x, counts, cache)]
    x = x[:, -1:]
    for step in range(20):
        # samples that have ended get nothing more
        counts = (torch.arange(batch) + step < 18).long()
        x = model(x, counts, cache)
        outputs.append(x)
    return [*outputs, cache.lengths.clone(), cache.longest()]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
