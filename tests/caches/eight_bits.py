"""A language model with a cache of eight bits: values and their scales, written at an int."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F

REFUSED = "`.length` is read from outside"


class Eight:
    def __init__(self, batch, room, width):
        self.values = torch.zeros(2, batch, room, width, dtype=torch.int8)
        self.scales = torch.ones(2, batch, room, 1)
        self.length = torch.tensor(0)

    def write(self, which, x):
        start = int(self.length)
        scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
        self.values[which, :, start : start + x.shape[1]] = (x / scale).round().to(torch.int8)
        self.scales[which, :, start : start + x.shape[1]] = scale
        stop = start + x.shape[1]
        return self.values[which, :, :stop].float() * self.scales[which, :, :stop]

    def advance(self, n):
        self.length += n


class Block(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, cache: Eight):
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v = cache.write(0, k), cache.write(1, v)
        cache.advance(x.shape[1])
        return torch.tanh(x + F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1))


def build():
    return Block().eval().requires_grad_(False)


def decode(model, batch, steps=20, room=32):
    cache = Eight(batch, room, 6)
    x, outputs = torch.linspace(-1, 1, batch * 3 * 6).view(batch, 3, 6), []
    for _ in range(steps + 1):
        y = model(x, cache)
        outputs.append(y)
        x = y[:, -1:] / 2
    return [*outputs, int(cache.length)]


def rounds():
    return [lambda model, batch=batch: decode(model, batch) for batch in (1, 3, 2)]


def in_turn(model):
    one, other, outputs = Eight(1, 9, 6), Eight(2, 9, 6), []
    for i in range(4):
        outputs += [model(torch.full((1, 2, 6), i / 4), one), model(torch.full((2, 1, 6), -i / 4), other)]
    return outputs


def harder():
    return [
        in_turn,
        lambda model: decode(model, 2, 9, 8),
        lambda model: decode(model, 2, 3),
        lambda model: decode(model, 1, 3),
    ]
