"""Properties, class methods and a registry that keeps the plain function."""

import functools

import torch
import torch.nn as nn

REGISTRY = {}


def register(fn):
    REGISTRY[fn.__name__] = fn
    return fn


@register
def spans(grid):
    return [torch.arange(n) for n in grid.sum(-1).tolist()], grid.max().item()


class Vision(nn.Module):
    @classmethod
    def boxes(cls, grid):
        return [torch.ones(h, w) for h, w in grid.tolist()], grid.min().item(), cls.__name__

    @staticmethod
    def rows(grid):
        return [torch.ones(h) for h in grid[:, 0].tolist()], grid.sum().item()

    @functools.lru_cache(maxsize=None)
    def cached(self, grid):
        self.misses = getattr(self, "misses", 0) + 1
        return [torch.zeros(h) for h in grid[:, 0].tolist()], grid.sum().item()

    def forward(self, grid):
        return self.boxes(grid), self.rows(grid), REGISTRY["spans"](grid), spans(grid), self.cached(grid), self.cached(grid)

# run
def make(): return Vision()
calls = [(torch.tensor([[2, 3], [1, 4]]),)]
unsafe = True
