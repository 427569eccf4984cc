"""A filter of noise: the state of a recurrent cell is an attribute of the model, detached after each chunk."""

from __future__ import annotations

import torch
import torch.nn as nn

UNSEEN = "no index: the state is an attribute"


class Denoiser(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.cell, self.out = nn.GRUCell(width, width), nn.Linear(width, width)
        self.state = None
        self.chunks = 0

    def reset(self):
        self.state, self.chunks = None, 0

    def forward(self, x):
        h = x.new_zeros(x.shape[0], x.shape[2]) if self.state is None else self.state
        outputs = []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            outputs.append(self.out(h))
        self.state = h.detach()
        return torch.stack(outputs, dim=1)


def build():
    return Denoiser().eval()


def stream(model, batch, chunks=20):
    plain = getattr(model, "_orig_mod", model)
    plain.reset()
    outputs = [model(torch.linspace(-1, 1, batch * 2 * 5).view(batch, 2, 5) * i / 9) for i in range(chunks + 1)]
    return [*outputs, plain.state]


def rounds():
    return [lambda model, batch=batch: stream(model, batch) for batch in (1, 3, 2)]


def other_batch(model):
    getattr(model, "_orig_mod", model).reset()
    return [model(torch.ones(2, 2, 5)), model(torch.ones(3, 2, 5))]  # does not fit


def trained(model):
    getattr(model, "_orig_mod", model).reset()
    for n in (3, 2, 2):
        model(torch.full((2, n, 5), n / 4)).sum().backward()
    return [p.grad for p in model.parameters()]


def harder():
    return [other_batch, trained, lambda model: stream(model, 2, 3)]
