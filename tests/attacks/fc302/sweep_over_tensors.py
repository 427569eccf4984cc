"""All tensors of the cache are collected by what they are, for a checkpoint."""

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
        self._filled[layer] = end

    def __getitem__(self, layer: int):
        return self._keys[layer, :, : self.length(layer)]

    def tensors(self):
        return {name: value.clone() for name, value in vars(self).items() if isinstance(value, torch.Tensor)}

    def load(self, saved):
        for name, value in saved.items():
            getattr(self, name).copy_(value)


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
    out = [model(torch.ones(1, n, 4), cache) for n in (3, 1)]
    saved = cache.tensors()
    out.append(model(torch.ones(1, 1, 4), cache))
    cache.load(saved)
    return out, cache.length(0), model(torch.ones(1, 1, 4), cache)


calls = [steps]
