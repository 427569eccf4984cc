"""What is added is an integer of numpy's, of 8 bits; what is read is one of Python's."""

import numpy as np
import torch
from torch import nn


class Cache:
    def __init__(self, layers: int, batch: int, room: int, size: int):
        self.layers = layers
        self._keys = torch.zeros(layers, batch, room, size)
        self._filled = torch.zeros(layers, dtype=torch.int)

    def length(self, layer: int) -> int:
        return int(self._filled[layer].item())

    def append(self, layer: int, keys: torch.Tensor):
        start = self._filled[layer].item()
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        self._filled[layer] += keys.shape[1]

    def skip(self, layer: int, amount: int):
        self._filled[layer] += amount

    def rewind(self, layer: int, amount: int):
        start = self._filled[layer].item()
        self._filled[layer] = start - amount

    def is_empty(self, layer: int) -> bool:
        return self._filled[layer].item() == 0

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
    cache = Cache(2, 1, 300, 4)
    out = [model(torch.ones(1, n, 4), cache) for n in (3, 1)]
    cache.skip(0, np.int64(2))
    cache.skip(1, np.uint8(250))
    cache.rewind(0, np.int8(1))
    empty = cache.is_empty(0), cache.is_empty(np.int64(1))
    return out, empty, cache.length(0), cache.length(1), model(torch.ones(1, 1, 4), cache), cache.length(1)


calls = [steps]
