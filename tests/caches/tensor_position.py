"""Fixed shapes, and a position that stays a tensor in the graph, for CUDA graphs; only the loop asks for a number."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F

UNSEEN = "no number is read where it would end a graph; replayed by hand, a graph would keep the number for ever"


class FixedCache:
    """Keys and values (layer, batch, head, room, size), always read whole and masked."""

    def __init__(self, layers: int, batch: int, heads: int, room: int, size: int) -> None:
        self.room = room
        self._keys = torch.zeros(layers, batch, heads, room, size)
        self._values = torch.zeros_like(self._keys)
        self._position = torch.tensor(0, dtype=torch.long)

    @property
    def position(self) -> int:
        """For the loop around the model; it waits for the device."""
        return int(self._position.item())

    def write(self, layer: int, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        places = self._position + torch.arange(keys.shape[2], device=keys.device)
        self._keys[layer].index_copy_(2, places, keys)
        self._values[layer].index_copy_(2, places, values)
        return self._keys[layer], self._values[layer]

    def mask(self, fresh: int) -> torch.Tensor:
        """(fresh, room): what each new token may see."""
        own = self._position + torch.arange(fresh, device=self._keys.device)
        return own[:, None] >= torch.arange(self.room, device=self._keys.device)

    def advance(self, fresh: int) -> None:
        self._position.add_(fresh)

    def reset(self) -> None:
        self._position.zero_()


class Block(nn.Module):
    def __init__(self, layer: int, width: int, heads: int) -> None:
        super().__init__()
        self.layer, self.heads = layer, heads
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, cache: FixedCache) -> torch.Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        k, v = cache.write(self.layer, k, v)
        return x + F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(i, 8, 2) for i in range(2))

    def forward(self, x: torch.Tensor, cache: FixedCache) -> torch.Tensor:
        mask = cache.mask(x.shape[1])
        for block in self.blocks:
            x = block(x, mask, cache)
        cache.advance(x.shape[1])
        return x.tanh()


def build():
    return Model().eval()


def one_round(model, batch):
    cache = FixedCache(2, batch, 2, 30, 4)
    x = torch.linspace(-1, 1, batch * 5 * 8).view(batch, 5, 8)
    outputs = []
    while cache.position < 25:
        x = model(x, cache)[:, -1:]
        outputs.append(x)
    outputs.append(cache.position)
    cache.reset()
    return [*outputs, cache.position]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
