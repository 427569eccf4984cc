"""One counter for all layers, which a view of the cache shares: it is moved on for both."""

import torch
from torch import nn


class Cache:
    def __init__(self, layers: int, batch: int, room: int, size: int):
        self.layers = layers
        self._keys = torch.zeros(layers, batch, room, size)
        self._filled = torch.zeros((), dtype=torch.int)

    def length(self, layer: int) -> int:
        return int(self._filled.item())

    def append(self, layer: int, keys: torch.Tensor):
        start = self._filled.item()
        end = start + keys.shape[1]
        self._keys[layer, :, start:end] = keys
        if layer == self.layers - 1:
            self._filled.fill_(end)

    def __getitem__(self, layer: int):
        return self._keys[layer, :, : self.length(layer) + 1]

    def view(self, room: int):
        view = Cache(self.layers, self._keys.shape[1], room, self._keys.shape[3])
        view._keys = self._keys[:, :, :room]
        view._filled = self._filled
        return view


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
    view = cache.view(6)
    out = [model(torch.ones(1, n, 4), c) for n, c in ((3, cache), (1, view), (1, cache))]
    return out, cache.length(0), view.length(0)


calls = [steps]
