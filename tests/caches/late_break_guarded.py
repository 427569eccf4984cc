"""Python integers already, but a guarded graph break in the middle of each method."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F

# as it stands: 24 breaks, 28 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 5}


class SlotCache:
    def __init__(self, layers: int, batch: int, heads: int, slots: int, size: int):
        self.keys = torch.zeros(layers, batch, heads, slots, size)
        self.values = torch.zeros_like(self.keys)
        self.used = [0] * layers

    def append(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        start = self.used[layer]
        end = start + keys.shape[2]
        self.keys[layer, :, :, start:end] = keys
        self.values[layer, :, :, start:end] = values
        # the integers below change in every call
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
        self.used[layer] = end

    def get(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        if torch.compiler.is_compiling():
            torch._dynamo.graph_break()
        end = self.used[layer]
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def reset(self) -> None:
        self.used = [0] * len(self.used)


class Attention(nn.Module):
    def __init__(self, layer: int, width: int, heads: int):
        super().__init__()
        self.layer, self.heads = layer, heads
        self.proj = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor, cache: SlotCache) -> torch.Tensor:
        q, k, v = self.proj(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        cache.append(self.layer, k, v)
        k, v = cache.get(self.layer)
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] == k.shape[2]).transpose(1, 2).flatten(
            2
        )


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention(i, 12, 3) for i in range(3)])

    def forward(self, x: torch.Tensor, cache: SlotCache) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, cache)
        return x.tanh()


def build():
    return Model().eval()


def one_round(model, batch):
    cache = SlotCache(3, batch, 3, 36, 4)
    x = torch.linspace(-1, 1, batch * 8 * 12).view(batch, 8, 12)
    outputs = []
    for _ in range(21):
        x = model(x, cache)
        outputs.append(x)
        x = x[:, -1:]
    outputs.append(list(cache.used))
    cache.reset()
    return [*outputs, list(cache.used)]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
