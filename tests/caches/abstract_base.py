"""An abstract cache and two that implement it: one with fixed buffers, one that remembers nothing."""

from __future__ import annotations

import abc

import torch
import torch.nn as nn
import torch.nn.functional as F

# as it stands: 19 breaks, 26 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


class Cache(abc.ABC):
    """What attention needs from a cache."""

    @abc.abstractmethod
    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Take k and v, (batch, head, fresh, size), and return all that is known."""

    @abc.abstractmethod
    def get_seq_length(self, layer: int) -> int: ...

    def is_empty(self, layer: int) -> bool:
        return self.get_seq_length(layer) == 0


class NoCache(Cache):
    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return k, v

    def get_seq_length(self, layer: int) -> int:
        return 0


class BufferedCache(Cache):
    """Allocates everything at once. ``_cursor``: the next free place of each layer."""

    def __init__(self, n_layers: int, batch: int, n_heads: int, max_len: int, head_dim: int) -> None:
        self.n_layers = n_layers
        self.max_len = max_len
        self.keys = torch.zeros(n_layers, batch, n_heads, max_len, head_dim)
        self.values = torch.zeros(n_layers, batch, n_heads, max_len, head_dim)
        self._cursor = torch.full((n_layers,), 0, dtype=torch.long)

    def update(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        begin = self._cursor[layer].item()
        end = begin + k.shape[-2]
        assert end <= self.max_len, f"layer {layer} is full"
        self.keys[layer, ..., begin:end, :] = k
        self.values[layer, ..., begin:end, :] = v
        self._cursor[layer] += k.shape[-2]
        return self.keys[layer, ..., :end, :], self.values[layer, ..., :end, :]

    def get_seq_length(self, layer: int) -> int:
        return int(self._cursor[layer])

    def reset(self) -> None:
        self._cursor.fill_(0)


class Block(nn.Module):
    def __init__(self, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.q, self.k, self.v = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12)

    def forward(self, x: torch.Tensor, cache: Cache) -> torch.Tensor:
        q, k, v = (f(x).unflatten(-1, (3, 4)).transpose(1, 2) for f in (self.q, self.k, self.v))
        causal = cache.is_empty(self.layer) and x.shape[1] > 1
        k, v = cache.update(self.layer, k, v)
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).flatten(2)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(i) for i in range(2))
        self.out = nn.LayerNorm(12)

    def forward(self, x: torch.Tensor, cache: Cache) -> torch.Tensor:
        for block in self.blocks:
            x = block(x, cache)
        return self.out(x)


def build():
    return Net().eval()


def one_round(model, batch):
    cache = BufferedCache(2, batch, 3, 32, 4)
    x = torch.linspace(-1, 1, batch * 6 * 12).view(batch, 6, 12)
    outputs = []
    for _ in range(21):
        x = model(x, cache)[:, -1:].clone()
        outputs.append(x)
    outputs.append([cache.get_seq_length(i) for i in range(2)])
    cache.reset()
    return [*outputs, cache.is_empty(0)]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
