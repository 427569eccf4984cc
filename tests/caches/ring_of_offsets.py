"""A model of speech in frames: a ring whose end is a 0-d tensor, written by index on the device."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F

UNSEEN = "the end of the ring is only computed with"


class Ring:
    def __init__(self, batch, room, width):
        self.room = room
        self.cache = torch.zeros(2, batch, room, width)
        self.end = torch.zeros((), dtype=torch.long)

    def complete(self, k, v):
        n = k.shape[1]
        at = torch.arange(n, device=k.device) + self.end
        self.cache[0].index_copy_(1, at % self.room, k)
        self.cache[1].index_copy_(1, at % self.room, v)
        self.end.add_(n)
        places = torch.arange(self.room, device=k.device)
        last = self.end - 1
        delta = places - last % self.room
        positions = torch.where(delta <= 0, last + delta, last + delta - self.room)
        return self.cache[0], self.cache[1], positions, at


class Frames(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, ring):
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v, positions, at = ring.complete(k, v)
        mask = (positions >= 0) & (positions <= at[:, None])
        return torch.tanh(x + F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


def build():
    return Frames().eval().requires_grad_(False)


def decode(model, batch, steps=20, room=8):
    ring = Ring(batch, room, 6)
    x, outputs = torch.linspace(-1, 1, batch * 3 * 6).view(batch, 3, 6), []
    for _ in range(steps + 1):
        y = model(x, ring)
        outputs.append(y)
        x = y[:, -1:] / 2
    return [*outputs, ring.end.clone()]


def rounds():
    return [lambda model, batch=batch: decode(model, batch) for batch in (1, 3, 2)]


def in_turn(model):
    one, other, outputs = Ring(1, 4, 6), Ring(2, 5, 6), []
    for i in range(5):
        outputs += [model(torch.full((1, 2, 6), i / 4), one), model(torch.full((2, 1, 6), -i / 4), other)]
    return outputs


def too_long(model):
    return model(torch.ones(2, 3, 6), Ring(2, 2, 6))


def harder():
    return [in_turn, too_long, lambda model: decode(model, 2, 4), lambda model: decode(model, 1, 4, 3)]
