"""A plain cache object that each attention layer keeps to itself."""

from __future__ import annotations

import torch
from torch import nn

REFUSED = "module"


class StepCache:
    """Not a module: nothing of it is saved."""

    def __init__(self, batch, room, width):
        self.memory = torch.zeros(batch, room, 2 * width)
        self.fill = torch.tensor(0)

    def add(self, rows):
        at = self.fill.item()
        self.memory[: rows.shape[0], at : at + rows.shape[1]] = rows
        self.fill += rows.shape[1]
        return self.memory[: rows.shape[0], : at + rows.shape[1]]

    def restart(self):
        self.fill.zero_()


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cache = StepCache(3, 32, width)
        self.q = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)

    def forward(self, x):
        past = self.cache.add(self.kv(x))
        key, value = past.chunk(2, dim=-1)
        return x + (self.q(x) @ key.transpose(-1, -2)).softmax(dim=-1) @ value


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Layer(8), nn.Tanh(), Layer(8))

    def forward(self, x):
        return self.layers(x)

    def restart(self):
        for layer in self.layers:
            if isinstance(layer, Layer):
                layer.cache.restart()


def build():
    return Net().eval()


def one_round(model, batch):
    x = torch.linspace(-2, 2, batch * 4 * 8).view(batch, 4, 8)
    outputs = []
    for _ in range(21):
        x = model(x)[:, -1:]
        outputs.append(x)
    model.restart()
    return outputs


def rounds():
    return [lambda model, batch=batch: one_round(model, batch) for batch in (1, 3, 2)]
