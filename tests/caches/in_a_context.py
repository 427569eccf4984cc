"""A server: the cache of a request is in a context variable, where layers look for it; its place is a 0-d tensor."""

from __future__ import annotations

import contextvars

import torch
import torch.nn as nn

UNSEEN = "what is compiled calls a function for it: of which class that gives is not seen"


class Slot:
    def __init__(self, batch, room, width):
        self.buffer = torch.zeros(batch, room, width)
        self.place = torch.zeros((), dtype=torch.long)


_CURRENT: contextvars.ContextVar = contextvars.ContextVar("slot")


class Layer(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        slot = _CURRENT.get()
        place = int(slot.place)
        slot.buffer[:, place : place + x.shape[1]] = self.lin(x)
        slot.place += x.shape[1]
        return torch.tanh(slot.buffer[:, : place + x.shape[1]].mean(1, keepdim=True) + x)


def build():
    return Layer().eval().requires_grad_(False)


def decode(model, batch, steps=20, room=32):
    token = _CURRENT.set(Slot(batch, room, 6))
    try:
        x, outputs = torch.linspace(-1, 1, batch * 3 * 6).view(batch, 3, 6), []
        for _ in range(steps + 1):
            y = model(x)
            outputs.append(y)
            x = y[:, -1:] / 2
        return [*outputs, int(_CURRENT.get().place)]
    finally:
        _CURRENT.reset(token)


def rounds():
    return [lambda model, batch=batch: decode(model, batch) for batch in (1, 3, 2)]


def nested(model):
    outputs = []
    token = _CURRENT.set(Slot(1, 9, 6))
    outputs.append(model(torch.ones(1, 2, 6)))
    outputs += decode(model, 2, 2)
    outputs.append(model(torch.ones(1, 1, 6)))
    _CURRENT.reset(token)
    return outputs


def harder():
    return [nested, lambda model: decode(model, 2, 9, 8), lambda model: decode(model, 1, 3)]
