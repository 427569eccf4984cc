"""What is called graph_break is the project's own, and counts."""

import torch
from torch import nn

import breaks
from breaks import graph_break


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
        graph_break()
        breaks.graph_break()

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


# run
def make():
    return Model()


def steps(model):
    cache = Cache(2, 1, 8, 4)
    return [model(torch.ones(1, n, 4), cache) for n in (3, 1, 1)], list(breaks.seen)


calls = [steps]
compiled = True
