"""Layers of a list give their own buffer: what is written into it above a check is there after the error."""

import torch
import torch.nn as nn


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.zeros(2))

    def forward(self, x):
        rows = self.rows
        return rows


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) if i < 1 else layer(x)
        return x


class One(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Rows()

    def forward(self, x):
        rows = self.part(x)
        rows[0] = 1
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x + rows


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([Rows(), Rows()])

    def forward(self, x):
        for i in range(2):
            rows = self.parts[i](x)
            rows[0] = 1
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x + rows


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = None

    def forward(self, x):
        for i in range(2):
            rows = self.heads[i](x)
            rows[0] = 1
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x + rows


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = None

    def forward(self, x):
        for i in range(2):
            rows = self.parts[i](x)
            rows[0] = 1
        if torch.isnan(x).any():
            raise ValueError("nan")
        return x + rows


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder, self.other = Decoder(), Heads()
        rows = Rows()
        self.heads = nn.ModuleList([rows for _ in range(2)])
        head = Head()
        self.parts = nn.ModuleList([head for _ in range(2)])
        self.decoder.heads = self.heads
        self.other.parts = self.parts


class All(nn.Module):
    def __init__(self):
        super().__init__()
        model = Model()
        self.parts = nn.ModuleList([One(), Listed(), model.decoder, model.other])


def step(parts, x):
    told = []
    for part in parts.parts:
        try:
            out = torch.compile(part, backend="aot_eager")(x)
        except Exception:
            out = "raised"
        told += [out, *(b.clone() for b in part.buffers())]
    return told


# run
def make(): return All()
def taken(parts, x):
    torch._dynamo.reset()
    with torch.no_grad():
        return step(parts, x)
nan, one = torch.tensor([1.0, float("nan")]), torch.ones(2)
calls = [lambda parts: taken(parts, nan), lambda parts: taken(parts, one)]
