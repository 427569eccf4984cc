"""The layer is a number of numpy's, and so is the row that is read at it: a list takes both as an index."""

import numpy as np
import torch
from torch import nn


class Cache:
    def __init__(self, layers: int, batch: int, room: int, size: int):
        self._keys = torch.zeros(layers, batch, room, size)
        self._filled = torch.zeros(layers, dtype=torch.long)
        self._slots = torch.zeros(layers, dtype=torch.long)
        for slot, layer in enumerate(range(layers)):
            self._slots[layer] = int(slot)

    def use(self, layer: int, slot: int):
        self._slots[layer] = slot

    def length(self, layer: int):
        return self._filled[self._slots[layer].item()].item()

    def append(self, layer: int, keys: torch.Tensor):
        slot = int(self._slots[layer].item())
        start = self._filled[slot]
        end = start + keys.shape[1]
        self._keys[slot, :, start:end] = keys
        self._filled[slot] = end

    def __getitem__(self, layer: int):
        return self._keys[self._slots[layer].item(), :, : self.length(layer)]


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
    cache = Cache(np.int64(3), 1, 8, 4)
    cache.use(np.int64(0), np.int64(2))
    out = [model(torch.ones(1, n, 4), cache) for n in (3, 1)]
    return out, [cache.length(layer) for layer in np.arange(3)], cache[np.int64(0)]


calls = [steps]
