"""A counter, a row of a cache and the argument are written in place before the check, and seen after its error.

Backends make a graph free of writes first, and do those at its end.
"""

import torch
import torch.nn as nn


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps.add_(1)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x * 2


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(3, 2))

    def forward(self, x):
        rows = self.rows
        rows[1] = x.detach()
        self._check(x)
        return x * 2

    def _check(self, x):
        if torch.isnan(x).any():
            raise ValueError("nan")


class Argument(nn.Module):
    def forward(self, x):
        x = x.view(-1)
        x += 1
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x * 2


class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Steps(), Rows(), Argument()])


def step(parts, x):
    found = []
    for part in parts.parts:
        given = x.clone()
        compiled = torch.compile(part, backend="aot_eager")
        try:
            compiled(given)
        except Exception:
            found.append("raised")
        found += [given, *(b.clone() for b in part.buffers())]
    return found


# run
def make(): return All()
def taken(parts, x):
    torch._dynamo.reset()
    return step(parts, x)
calls = [lambda parts: taken(parts, torch.tensor([1.0, float("nan")])), lambda parts: taken(parts, torch.ones(2))]
