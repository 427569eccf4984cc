"""A cache that allocates when it sees the first keys, for only then it knows their shape and type."""
# ruff: noqa: UP045

from __future__ import annotations

from typing import Optional

import torch
import torch.nn as nn

# as it stands: 12 breaks, 12 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


class LazyCache:
    def __init__(self, capacity: int):
        self.capacity = capacity
        self.keys: Optional[torch.Tensor] = None
        self.values: Optional[torch.Tensor] = None
        self._used = torch.tensor(0)

    def _allocate(self, k: torch.Tensor, v: torch.Tensor) -> None:
        batch, _, width = k.shape
        self.keys = torch.zeros(batch, self.capacity, width, dtype=k.dtype, device=k.device)
        self.values = torch.zeros(batch, self.capacity, v.shape[-1], dtype=v.dtype, device=v.device)

    def store(self, k: torch.Tensor, v: torch.Tensor):
        if self.keys is None:
            self._allocate(k, v)
        start = int(self._used.item())
        self.keys[:, start : start + k.shape[1]] = k
        self.values[:, start : start + k.shape[1]] = v
        self._used += k.shape[1]
        return self.keys[:, : start + k.shape[1]], self.values[:, : start + k.shape[1]]

    @property
    def used(self) -> int:
        return int(self._used.item())


class Reader(nn.Module):
    """Slots that read the past by additive attention."""

    def __init__(self, width=9):
        super().__init__()
        self.k, self.v = nn.Linear(width, 5), nn.Linear(width, width)
        self.score = nn.Linear(5, 1)

    def forward(self, x, cache):
        k, v = cache.store(self.k(x), self.v(x))
        weights = self.score(torch.tanh(k + self.k(x[:, -1:]))).softmax(1)
        return (weights * v).sum(1, keepdim=True) / cache.used**0.5


def build():
    return Reader().eval()


def one_round(model, batch):
    cache = LazyCache(30)
    x = torch.linspace(-1, 1, batch * 5 * 9).view(batch, 5, 9)
    outputs = []
    for _ in range(21):
        x = model(x, cache)
        outputs.append(x)
    return [*outputs, cache.used]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
