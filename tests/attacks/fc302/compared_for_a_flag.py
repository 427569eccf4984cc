"""Whether a layer is empty is a truth value that comes from a comparison of tensors."""

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

    def fresh(self, layer: int) -> bool:
        return self._filled[layer] == 0


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
    first = cache.fresh(0)
    return bool(first), torch.is_tensor(first), [model(torch.ones(1, n, 4), cache) for n in (3, 1, 1)], bool(cache.fresh(1))


calls = [steps]
