"""A test counts the breaks, with a double that it puts in the place of PyTorch's own by its path."""

from unittest import mock

import torch
from torch import nn

import torch._dynamo


class Cache:
    def __init__(self, layers: int, batch: int, room: int, size: int):
        self.layers = layers
        self._keys = torch.zeros(layers, batch, room, size)
        self._filled = [0] * layers

    def length(self, layer: int) -> int:
        return self._filled[layer]

    def append(self, layer: int, keys: torch.Tensor):
        start = self._filled[layer]
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._filled[layer] = end
        torch._dynamo.graph_break()

    def __getitem__(self, layer: int):
        return self._keys[layer, :, : self.length(layer)]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, cache: Cache):
        for layer in range(2):
            cache.append(layer, self.lin(x))
            x = x + cache[layer].sum(1, keepdim=True)
        return x


class Counted(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = Model()

    def forward(self, x, cache: Cache):
        with mock.patch("torch._dynamo.graph_break") as broken:
            x = self.model(x, cache)
        return x, broken.call_count


# run
def make():
    return Counted()


def steps(model):
    cache = Cache(2, 1, 8, 4)
    return [model(torch.ones(1, n, 4), cache) for n in (3, 1, 1)]


calls = [steps]
