"""States are collected above a check, in tuples, or in lists that others see: those hold more after its error."""

import torch
import torch.nn as nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(2)

    def forward(self, x):
        if torch.isnan(x).any():
            raise ValueError("nan")
        return self.norm(x)


class Tuples(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Layer(), Layer()])

    def forward(self, x, states=True):
        found = () if states else None
        for layer in self.layers:
            if states:
                found += (x,)
            x = layer(x)
        return x, found


class Given(nn.Module):
    def forward(self, x, found=None):
        found = () if found is None else found
        found += (x,)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, found


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x, found=None):
        found = () if found is not None else self.seen
        found += (x,)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(found)


class Turned(nn.Module):
    def forward(self, x, found):
        kept = found
        kept += ((kept := ()) or x,)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, kept


class Bound(nn.Module):
    def forward(self, x, found):
        kept = ()

        def keep(more):
            nonlocal kept
            kept += (more,)
            kept = found

        keep(x)
        keep(x)
        kept += (x,)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(kept)


class Parts(nn.Module):
    def forward(self, x, found):
        kept, other = *[found], ()
        first, kept = *(), kept
        kept += (x,)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(kept)


class Circle(nn.Module):
    def forward(self, x, found):
        a, b = found, [x]
        for _ in range(3):
            c = a
            a = b
            b = c
            a += (x,)
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x, len(a), len(b)


class All(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Tuples(), Given(), Held(), Turned(), Bound(), Parts(), Circle()])


def step(parts, x):
    told = []
    for part in parts.parts:
        given = [x]
        try:
            out = torch.compile(part, backend="aot_eager")(x, given)
        except Exception:
            out = "raised"
        told += [out, len(given), len(part.seen) if hasattr(part, "seen") else 0]
    return told


# run
def make(): return All()
def taken(parts, x):
    torch._dynamo.reset()
    return step(parts, x)
nan, one = torch.tensor([1.0, float("nan")]), torch.ones(2)
calls = [lambda parts: taken(parts, nan), lambda parts: taken(parts, one)]
