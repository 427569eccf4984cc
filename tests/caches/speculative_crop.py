"""Speculative decoding: three drafted tokens are verified at once, and what was wrong is cropped from the cache."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn as nn

# as it stands: 15 breaks, 18 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 2}


class Shape(NamedTuple):
    layers: int
    batch: int
    room: int
    width: int


class RollbackCache:
    """A cache that can forget its newest tokens."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.kv = torch.zeros(2, *shape)
        self.lengths = torch.zeros(shape.layers, dtype=torch.int32)

    def extend(self, layer: int, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        begin = int(self.lengths[layer].item())
        end = begin + key.shape[1]
        self.kv[0, layer, :, begin:end] = key
        self.kv[1, layer, :, begin:end] = value
        self.lengths[layer] = end
        return self.kv[0, layer, :, :end], self.kv[1, layer, :, :end]

    def length(self, layer: int = 0) -> int:
        return int(self.lengths[layer].item())

    def crop(self, maximum: int) -> None:
        """Forget everything behind ``maximum`` tokens; a negative number forgets that many."""
        if maximum < 0:
            maximum = self.length() - abs(maximum)
        if self.length() <= maximum:
            return
        for layer in range(self.shape.layers):
            self.lengths[layer] = maximum

    def rollback(self, amount: int) -> None:
        self.lengths -= amount

    def reset(self) -> None:
        self.lengths = torch.zeros(self.shape.layers, dtype=torch.int32)


class Layer(nn.Module):
    def __init__(self, index: int, width: int) -> None:
        super().__init__()
        self.index = index
        self.qkv = nn.Parameter(torch.randn(width, 3 * width) / width**0.5)

    def forward(self, x: torch.Tensor, cache: RollbackCache) -> torch.Tensor:
        q, k, v = (x @ self.qkv).tensor_split(3, dim=-1)
        past = cache.length(self.index)
        k, v = cache.extend(self.index, k, v)
        own = torch.arange(past, past + x.shape[1], device=x.device)
        allowed = own[:, None] >= torch.arange(k.shape[1], device=x.device)[None]
        weights = torch.where(allowed, q @ k.mT, -torch.inf).softmax(-1)
        return x + weights @ v


class Verifier(nn.Module):
    def __init__(self, vocabulary: int = 13, width: int = 8, layers: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(i, width) for i in range(layers))
        self.out = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor, cache: RollbackCache) -> torch.Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cache)
        return self.out(x)


def build():
    return Verifier().eval()


def speculate(model, batch):
    cache = RollbackCache(Shape(2, batch, 90, 8))
    ids = torch.arange(6 * batch).view(batch, 6) % 13
    logits = model(ids, cache)
    outputs = [logits]
    for step in range(20):
        last = logits[:, -1:].argmax(-1)
        draft = torch.cat([last, (last + 1) % 13, (last + 2) % 13], dim=1)
        logits = model(draft, cache)
        # pretend that the second or the third of them was wrong
        wrong = 1 + step % 2
        if step % 3:
            cache.rollback(wrong)
        else:
            cache.crop(-wrong)
        outputs.append(logits)
    outputs.append([cache.length(), cache.length(1)])
    cache.crop(10)
    outputs.append([cache.length(), cache.length(1)])
    cache.reset()
    return [*outputs, cache.length()]


def rounds():
    return [lambda model, batch=batch: speculate(model, batch) for batch in (1, 3, 2)]
