"""What AssertedContainer reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = (
    Example(
        title="layers that are handed in",
        before="""\
class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def run(self, x, *layers):
        assert layers, "no layers"
        for layer in layers:
            x = torch.relu(layer(x))
        return x

    def forward(self, x):
        return self.run(x, self.first, self.second)
""",
        after="""\
class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def run(self, x, *layers):
        assert len(layers) > 0, "no layers"
        for layer in layers:
            x = torch.relu(layer(x))
        return x

    def forward(self, x):
        return self.run(x, self.first, self.second)
""",
        run="""\
def make(): return Chain()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
""",
    ),
    Example(
        title="what a comprehension has left",
        before="""\
class Whole(nn.Module):
    def forward(self, parts):
        long = [p for p in parts if p.shape[0] > 1]
        assert long, "all of them are short"
        return torch.cat(long)
""",
        after="""\
class Whole(nn.Module):
    def forward(self, parts):
        long = [p for p in parts if p.shape[0] > 1]
        assert len(long) > 0, "all of them are short"
        return torch.cat(long)
""",
        run="""\
def make(): return Whole()
calls = [([torch.ones(2, 3), torch.ones(1, 3)],)]
""",
    ),
    Example(
        title="a list that grows, without a message",
        before="""\
class Grown(nn.Module):
    def forward(self, x):
        found = []
        for width in (1, 2, 3):
            if x.shape[-1] > width:
                found.append(x[..., :width].sum(-1))
        assert found
        return torch.stack(found)
""",
        after="""\
class Grown(nn.Module):
    def forward(self, x):
        found = []
        for width in (1, 2, 3):
            if x.shape[-1] > width:
                found.append(x[..., :width].sum(-1))
        assert len(found) > 0
        return torch.stack(found)
""",
        run="""\
def make(): return Grown()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
""",
    ),
    Example(
        title="keywords",
        before="""\
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), 0.5))

    @staticmethod
    def weighted(x, **weights):
        assert weights, "give at least one weight"
        for weight in weights.values():
            x = x * weight
        return x

    def forward(self, x):
        return self.weighted(x, scale=self.scale)
""",
        after="""\
class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), 0.5))

    @staticmethod
    def weighted(x, **weights):
        assert len(weights) > 0, "give at least one weight"
        for weight in weights.values():
            x = x * weight
        return x

    def forward(self, x):
        return self.weighted(x, scale=self.scale)
""",
        run="""\
def make(): return Weighted()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
train = True
""",
    ),
    Example(
        title="a tuple made of a list, in a loop",
        before="""\
class Turns(nn.Module):
    def forward(self, x, parts):
        for n in range(2):
            rest = tuple(parts)
            assert rest, "nothing is left"
            x = x + rest[0] * n
        return x
""",
        after="""\
class Turns(nn.Module):
    def forward(self, x, parts):
        for n in range(2):
            rest = tuple(parts)
            assert len(rest) > 0, "nothing is left"
            x = x + rest[0] * n
        return x
""",
        run="""\
def make(): return Turns()
calls = [(torch.ones(3), [torch.ones(3)])]
""",
    ),
    Example(
        title="a parameter, by its annotation",
        before="""\
class Joined(nn.Module):
    def forward(self, parts: list[torch.Tensor]):
        assert parts, "nothing to join"
        return torch.cat(parts)
""",
        after="""\
class Joined(nn.Module):
    def forward(self, parts: list[torch.Tensor]):
        assert len(parts) > 0, "nothing to join"
        return torch.cat(parts)
""",
        run="""\
def make(): return Joined()
calls = [([torch.ones(2, 3), torch.ones(1, 3)],)]
""",
        unsafe=True,
    ),
    Example(
        title="the layers of a model",
        before="""\
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        assert self.layers, "a model without layers"
        for layer in self.layers:
            x = layer(x)
        return x
""",
        after="""\
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    def forward(self, x):
        assert bool(self.layers), "a model without layers"
        for layer in self.layers:
            x = layer(x)
        return x
""",
        run="""\
def make(): return Deep()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
""",
    ),
    Example(
        title="a module that not every model has, made by a helper",
        before="""\
from functools import partial

Rows = partial(nn.Linear, 4)


class Speech(nn.Module):
    def __init__(self, spoken=True):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        if spoken:
            self.rows = Rows(4)
        else:
            self.rows = None
        self.decoder = nn.Linear(4, 4) if spoken else None

    def forward(self, x):
        x = self.lin(x)
        assert self.decoder
        assert self.rows, "no rows"
        return self.rows(self.decoder(x))
""",
        after="""\
from functools import partial

Rows = partial(nn.Linear, 4)


class Speech(nn.Module):
    def __init__(self, spoken=True):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        if spoken:
            self.rows = Rows(4)
        else:
            self.rows = None
        self.decoder = nn.Linear(4, 4) if spoken else None

    def forward(self, x):
        x = self.lin(x)
        assert bool(self.decoder)
        assert bool(self.rows), "no rows"
        return self.rows(self.decoder(x))
""",
        run="""\
def make(): return Speech()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4),)]
train = True
""",
        compiles=True,  # it comes to no graph at all
    ),
    Example(
        title="`len` may be another name",
        before="""\
from numpy import *


class Joined(nn.Module):
    def forward(self, x, y):
        parts = [p for p in (x, y) if p.dim() > 0]
        assert parts, "numbers alone"
        return torch.cat(parts) * pi
""",
        after="""\
from numpy import *


class Joined(nn.Module):
    def forward(self, x, y):
        parts = [p for p in (x, y) if p.dim() > 0]
        assert (True if parts else False), "numbers alone"
        return torch.cat(parts) * pi
""",
        run="""\
def make(): return Joined()
calls = [(torch.ones(2), torch.ones(3))]
""",
    ),
    Example(
        title="the last part of what is asserted",
        before="""\
class Guarded(nn.Module):
    def __init__(self, ready=True):
        super().__init__()
        self.ready = ready
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x, *others):
        assert self.ready and self.layers, "not ready"
        x = self.layers[0](x)
        assert not self.ready or others
        parts = [o for o in others]
        assert self.ready and (x is None or parts), "nothing to add"
        return x + parts[0]
""",
        after="""\
class Guarded(nn.Module):
    def __init__(self, ready=True):
        super().__init__()
        self.ready = ready
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x, *others):
        assert self.ready and bool(self.layers), "not ready"
        x = self.layers[0](x)
        assert not self.ready or len(others) > 0
        parts = [o for o in others]
        assert self.ready and (x is None or len(parts) > 0), "nothing to add"
        return x + parts[0]
""",
        run="""\
def make(): return Guarded()
calls = [(torch.linspace(-1, 1, 8).reshape(2, 4), torch.ones(4))]
""",
    ),
    Example(
        title="the last part, where `len` may be another name",
        before="""\
from numpy import *


class Sum(nn.Module):
    def forward(self, x, y):
        parts = [p for p in (x, y) if p.dim() > 0]
        assert x.dim() == y.dim() and parts
        return torch.cat(parts) * pi
""",
        after="""\
from numpy import *


class Sum(nn.Module):
    def forward(self, x, y):
        parts = [p for p in (x, y) if p.dim() > 0]
        assert x.dim() == y.dim() and (True if parts else False)
        return torch.cat(parts) * pi
""",
        run="""\
def make(): return Sum()
calls = [(torch.ones(2), torch.ones(3))]
""",
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="parts before the last one, and what is turned around",
        source="""\
class Early(nn.Module):
    def __init__(self):
        super().__init__()
        self.ready, self.barred = True, False
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x, *others):
        assert self.layers and others and self.ready
        assert others or self.ready, "nothing"
        assert (self.barred or self.layers) and self.ready
        assert not (self.barred and others)
        return self.layers[0](x)
""",
    ),
    NearMiss(
        title="a tensor as the last part",
        source="""\
class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        self.ready = True
        self.register_buffer("seen", torch.ones(()))

    def forward(self, x):
        assert self.ready and self.seen
        return x * 2
""",
    ),
    NearMiss(
        title="a tensor that may be a function instead, and a flag",
        source="""\
class Scaled(nn.Module):
    def __init__(self, scale=None, masked=False):
        super().__init__()
        self.scale = torch.ones(()) if scale is None else scale
        self.masked = masked
        self.register_buffer("seen", torch.ones(()))

    def forward(self, x):
        assert self.masked, "no mask"
        assert self.scale
        assert self.seen
        return x * (self.scale(x) if callable(self.scale) else self.scale)
""",
    ),
    NearMiss(
        title="a list of literals, which Dynamo knows",
        source="""\
class Literal(nn.Module):
    def forward(self, x):
        widths = [1, 2]
        assert widths, "no widths"
        return x[..., : widths[0]]
""",
    ),
    NearMiss(
        title="a message that is put together: Dynamo takes another way",
        source="""\
class Told(nn.Module):
    def forward(self, x, *parts):
        assert parts, f"nothing beside a tensor of shape {tuple(x.shape)}"
        return torch.cat([x, *parts])
""",
    ),
    NearMiss(
        title="a condition with more to it",
        source="""\
class More(nn.Module):
    def forward(self, x, *parts):
        assert parts and x.dim() == 2, "two dimensions, and parts"
        assert not x.is_sparse
        return torch.cat([x, *parts])
""",
    ),
    NearMiss(
        title="tensors and numbers",
        source="""\
class Numbers(nn.Module):
    def forward(self, x, mask: torch.Tensor, width: int = 2):
        assert mask.any(), "all is masked"
        assert width, "no width"
        return x[..., :width]
""",
    ),
    NearMiss(
        title="an iterator has no length, an object may have its own truth",
        source="""\
class Rows:
    def __init__(self, rows):
        self.rows = rows

    def __bool__(self):
        return True


class Iterated(nn.Module):
    def forward(self, x, parts):
        pairs = zip(parts, parts)
        each = (p * 2 for p in parts)
        rows = Rows(parts)
        assert pairs, "m"
        assert each, "m"
        assert rows, "m"
        assert parts, "m"
        return torch.cat([*each, x])
""",
    ),
    NearMiss(
        title="it may be a tensor by then",
        source="""\
class Either(nn.Module):
    def forward(self, x, *parts):
        if x.dim() > 1:
            parts = x
        assert parts, "nothing given"
        return x + parts[0]
""",
    ),
    NearMiss(
        title="`list` is another name",
        source="""\
def list(parts):
    return torch.stack(parts).sum()


class Named(nn.Module):
    def forward(self, x, parts):
        found = list(parts)
        assert found, "m"
        return x + found
""",
    ),
    NearMiss(
        title="only eager code asserts it",
        source="""\
class Guarded(nn.Module):
    def forward(self, x, *parts):
        if not torch.compiler.is_compiling():
            assert parts, "nothing given"
        return torch.cat([x, *parts])
""",
    ),
)
