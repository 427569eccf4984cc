"""A detector of events in a stream: a registered buffer is rolled by the chunk, which goes to its end."""

from __future__ import annotations

import torch
import torch.nn as nn

UNSEEN = "no index: the buffer is rolled"


class Window(nn.Module):
    def __init__(self, width=5, room=8):
        super().__init__()
        self.register_buffer("window", torch.zeros(1, room, width))
        self.lin = nn.Linear(width, width)
        self.filled = 0

    def reset(self, batch):
        self.window = torch.zeros(batch, *self.window.shape[1:])
        self.filled = 0

    def forward(self, x):
        n = x.shape[1]
        self.window.copy_(torch.roll(self.window, -n, dims=1))
        self.window[:, -n:] = x
        return self.lin(self.window).mean(1)


def build():
    return Window().eval()


def stream(model, batch, chunks=20):
    plain = getattr(model, "_orig_mod", model)
    plain.reset(batch)
    outputs = [model(torch.linspace(-1, 1, batch * n * 5).view(batch, n, 5)) for n in (3, *[1] * chunks)]
    return [*outputs, plain.window.clone()]


def rounds():
    return [lambda model, batch=batch: stream(model, batch) for batch in (1, 3, 2)]


def too_long(model):
    getattr(model, "_orig_mod", model).reset(2)
    return model(torch.ones(2, 9, 5))


def trained(model):
    getattr(model, "_orig_mod", model).reset(2)
    for n in (3, 1, 1):
        model(torch.full((2, n, 5), n / 2)).sum().backward()
    return [p.grad for p in model.parameters()]


def harder():
    return [too_long, trained, lambda model: stream(model, 2, 3), lambda model: stream(model, 1, 3)]
