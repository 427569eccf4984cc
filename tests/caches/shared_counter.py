"""Keys and values as two objects whose lengths are elements of one tensor, which the decoding loop sets by itself."""

from __future__ import annotations

import torch
import torch.nn as nn

UNSEEN = "what the constructor is given may be anything, and belongs to somebody else"


class Strip:
    """A buffer (batch, room, width); ``length`` is a view of somebody else's tensor."""

    def __init__(self, data: torch.Tensor, length: torch.Tensor) -> None:
        self.data = data
        self.length = length

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.data.shape[0], self.length.item(), self.data.shape[2])

    def cat(self, rows: torch.Tensor) -> torch.Tensor:
        start = self.length.item()
        self.data[:, start : start + rows.shape[1]] = rows
        self.length.add_(rows.shape[1])
        return self.data[:, : self.length.item()]


def make_strips(layers: int, batch: int, room: int, width: int) -> tuple[list[tuple[Strip, Strip]], torch.Tensor]:
    """Pairs of strips, and all their lengths: filling the latter forgets what the former hold."""
    data = torch.zeros(2 * layers, batch, room, width)
    lengths = torch.zeros(2 * layers, dtype=torch.long)
    strips = [Strip(data[i], lengths[i]) for i in range(2 * layers)]
    return list(zip(strips[::2], strips[1::2], strict=True)), lengths


class Head(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: torch.Tensor, pair: tuple[Strip, Strip]) -> torch.Tensor:
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        keys, values = pair[0].cat(key), pair[1].cat(value)
        return x + torch.softmax(query @ keys.mT, dim=-1) @ values


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(6) for _ in range(2))

    def forward(self, x: torch.Tensor, strips: list[tuple[Strip, Strip]]) -> torch.Tensor:
        for head, pair in zip(self.heads, strips, strict=True):
            x = head(x, pair)
        return x.sin()


def build():
    return Tower().eval()


def one_round(model, batch):
    strips, lengths = make_strips(2, batch, 64, 6)
    x = torch.linspace(-1, 1, batch * 4 * 6).view(batch, 4, 6)
    outputs = [model(x, strips)]
    for step in range(20):
        # two candidates at a time; the worse one is forgotten
        x = model(outputs[-1][:, -2:], strips)
        lengths.fill_(4 + step + 1)
        outputs.append(x)
    return [*outputs, lengths.clone(), strips[0][0].shape]


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
