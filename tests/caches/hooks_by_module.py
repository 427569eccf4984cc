"""A speech decoder: forward hooks on the projections keep what they gave, in a dict by module, and add to it."""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F

UNSEEN = "no index at all: what is kept grows"


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, kept):
        q, k, v = self.query(x), kept.get(self.key), kept.get(self.value)
        k = self.key(x) if k is None else torch.cat([k, self.key(x)], dim=1)
        v = self.value(x) if v is None else torch.cat([v, self.value(x)], dim=1)
        kept[self.key], kept[self.value] = k, v
        return F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1)


class Speech(nn.Module):
    def __init__(self, width=8, layers=2):
        super().__init__()
        self.heads = nn.ModuleList([Head(width) for _ in range(layers)])
        self.places = nn.Parameter(torch.linspace(-1, 1, 32 * width).view(32, width))

    def forward(self, x, kept):
        past = kept[self.heads[0].key].shape[1] if kept else 0
        x = x + self.places[past : past + x.shape[1]]
        for head in self.heads:
            x = x + head(x, kept)
        return x


def build():
    return Speech().eval()


def decode(model, batch, steps=20, kept=None):
    kept = {} if kept is None else kept
    x, outputs = torch.linspace(-1, 1, batch * 3 * 8).view(batch, 3, 8), []
    for _ in range(steps + 1):
        y = model(x, kept)
        outputs.append(y)
        x = y[:, -1:] / 2
    return outputs


def rounds():
    return [lambda model, batch=batch: decode(model, batch) for batch in (1, 3, 2)]


def in_turn(model):
    one, other, outputs = {}, {}, []
    for i in range(4):
        outputs += [model(torch.full((1, 2, 8), i / 4), one), model(torch.full((2, 1, 8), -i / 4), other)]
    return outputs


def trained(model):
    kept = {}
    loss = sum(model(torch.full((2, n, 8), n / 4), kept).sum() for n in (3, 1, 1))
    loss.backward()
    return [p.grad for p in model.parameters()]


def harder():
    return [in_turn, trained, lambda model: decode(model, 2, 40), lambda model: decode(model, 1, 3)]
