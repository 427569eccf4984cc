"""A cache with __slots__ that a class method allocates, and that moves between dtypes."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F

# as it stands: 15 breaks, 17 recompiles in three rounds
PROMISE = {"strategy": "single-graph", "breaks": 0, "launches": 1, "recompiles_at_most": 3}


class PackedCache:
    """Keys and values of all layers in one buffer, (2 * layer, batch, head, place, size)."""

    __slots__ = ("_end", "_limit", "_packed")

    def __init__(self, packed: torch.Tensor) -> None:
        self._packed = packed
        self._end = torch.zeros(packed.shape[0] // 2, dtype=torch.long)
        self._limit = packed.shape[3]

    @classmethod
    def allocate(cls, layers: int, batch: int, heads: int, places: int, size: int) -> PackedCache:
        return cls(torch.zeros(2 * layers, batch, heads, places, size))

    def seen(self, layer: int) -> int:
        return self._end[layer].item()

    def grow(self, layer: int, pair: torch.Tensor) -> torch.Tensor:
        """``pair``: keys and values, (2, batch, head, fresh, size); returns all of them, as long as they are."""
        old = self.seen(layer)
        new = min(old + pair.shape[3], self._limit)
        if new - old < pair.shape[3]:
            raise OverflowError(f"{old + pair.shape[3]} > {self._limit}")
        self._packed[2 * layer : 2 * layer + 2, :, :, old:new] = pair
        self._end[layer] = new
        return self._packed[2 * layer : 2 * layer + 2, :, :, :new]

    def rewind(self) -> None:
        for layer in range(self._end.numel()):
            self._end[layer] = 0


def rotate(x: torch.Tensor, start: int) -> torch.Tensor:
    """Rotary positions, from ``start`` on."""
    half = x.shape[-1] // 2
    angle = torch.arange(start, start + x.shape[-2], device=x.device)[:, None] / 10.0 ** torch.arange(
        half, device=x.device
    )
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()), dim=-1)


class RotaryBlock(nn.Module):
    def __init__(self, layer: int, width: int = 16, heads: int = 2):
        super().__init__()
        self.layer, self.heads = layer, heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.norm = nn.RMSNorm(width)

    def forward(self, x: torch.Tensor, cache: PackedCache) -> torch.Tensor:
        start = cache.seen(self.layer)
        q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        keys, values = cache.grow(self.layer, torch.stack((rotate(k, start), v)))
        causal = start == 0 and x.shape[1] > 1
        mixed = F.scaled_dot_product_attention(rotate(q, start), keys, values, is_causal=causal)
        return x + mixed.transpose(1, 2).flatten(2)


class Stack(nn.Sequential):
    def forward(self, x: torch.Tensor, cache: PackedCache) -> torch.Tensor:
        for block in self:
            x = block(x, cache)
        return x


def build():
    return Stack(RotaryBlock(0), RotaryBlock(1), RotaryBlock(2)).eval()


def one_round(model, batch):
    cache = PackedCache.allocate(3, batch, 2, 28, 8)
    x = torch.linspace(-1, 1, batch * 4 * 16).view(batch, 4, 16)
    outputs = []
    for _ in range(21):
        x = model(x, cache)
        outputs.append(x)
        x = x[:, -1:].sin()
    outputs.append([cache.seen(layer) for layer in range(3)])
    cache.rewind()
    return [*outputs, cache.seen(1)]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
