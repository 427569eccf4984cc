"""What SizeKeyedCache reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

_RUN = """\
def make(): return Net()
sizes = ((2, 3), (3, 4), (5, 4), (6, 7), (2, 3), (4, 8))
calls = [(torch.linspace(-1, 1, 2 * h * w).reshape(2, h, w),) for h, w in sizes]
"""

INVALID: tuple[Example, ...] = (
    Example(
        title="what is found is handed back at once",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def positions(self, x):
        key = (x.shape[-2], x.shape[-1])
        if key in self.cache:
            return self.cache[key][None].repeat(x.shape[0], 1, 1)
        rows = torch.arange(1, x.shape[-2] + 1, device=x.device)[:, None]
        columns = torch.arange(1, x.shape[-1] + 1, device=x.device)
        pos = (rows * columns).float().sin()
        self.cache[key] = pos  # without the batch
        return pos[None].repeat(x.shape[0], 1, 1)

    def forward(self, x):
        return x + self.positions(x)
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def positions(self, x):
        key = (x.shape[-2], x.shape[-1])
        if not torch.compiler.is_compiling() and key in self.cache:
            return self.cache[key][None].repeat(x.shape[0], 1, 1)
        rows = torch.arange(1, x.shape[-2] + 1, device=x.device)[:, None]
        columns = torch.arange(1, x.shape[-1] + 1, device=x.device)
        pos = (rows * columns).float().sin()
        if not torch.compiler.is_compiling():
            self.cache[key] = pos  # without the batch
        return pos[None].repeat(x.shape[0], 1, 1)

    def forward(self, x):
        return x + self.positions(x)
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="filled where it is missing, and read below; sizes are parameters of a helper",
        before="""\
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, b, h, w, device):
        if (h, w) not in self.kept:
            y = torch.arange(h, device=device)
            x = torch.arange(w, device=device)
            self.kept[h, w] = torch.cartesian_prod(y, x)
        pos = self.kept[h, w].view(1, h * w, 2)
        return pos.expand(b, -1, 2).clone()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = Positions()

    def forward(self, x):
        b, h, w = x.shape
        return x.reshape(b, h * w, 1) + self.positions(b, h, w, x.device)
""",
        after="""\
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = {}

    def forward(self, b, h, w, device):
        cached = None if torch.compiler.is_compiling() else self.kept.get((h, w))
        if cached is None:
            y = torch.arange(h, device=device)
            x = torch.arange(w, device=device)
            cached = torch.cartesian_prod(y, x)
            if not torch.compiler.is_compiling():
                self.kept[h, w] = cached
        pos = cached.view(1, h * w, 2)
        return pos.expand(b, -1, 2).clone()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = Positions()

    def forward(self, x):
        b, h, w = x.shape
        return x.reshape(b, h * w, 1) + self.positions(b, h, w, x.device)
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="behind not, with a dtype in the key, two tensors in an item",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self._tables = {}

    def forward(self, x):
        n = x.size(-1)
        if not (n, x.dtype) in self._tables:
            angles = torch.arange(n, device=x.device, dtype=x.dtype) * 0.5
            self._tables[n, x.dtype] = (angles.cos(), angles.sin())
        cos, sin = self._tables[n, x.dtype]
        return x * cos + x.flip(-1) * sin
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self._tables = {}

    def forward(self, x):
        n = x.size(-1)
        cached = None if torch.compiler.is_compiling() else self._tables.get((n, x.dtype))
        if cached is None:
            angles = torch.arange(n, device=x.device, dtype=x.dtype) * 0.5
            cached = (angles.cos(), angles.sin())
            if not torch.compiler.is_compiling():
                self._tables[n, x.dtype] = cached
        cos, sin = cached
        return x * cos + x.flip(-1) * sin
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="asked by get",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.grids = dict()

    def forward(self, x):
        size = x.shape[-2:]
        grid = self.grids.get(size)
        if grid is None:
            grid = torch.ones(size, device=x.device).cumsum(-1)
            self.grids[size] = grid
        return x * grid
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.grids = dict()

    def forward(self, x):
        size = x.shape[-2:]
        grid = None if torch.compiler.is_compiling() else self.grids.get(size)
        if grid is None:
            grid = torch.ones(size, device=x.device).cumsum(-1)
            if not torch.compiler.is_compiling():
                self.grids[size] = grid
        return x * grid
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="a dictionary of the module, filled in the other branch",
        before="""\
_WINDOWS = {}


class Net(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        if n in _WINDOWS:
            window = _WINDOWS[n]
        else:
            window = torch.linspace(0, 1, n, device=x.device).sin()
            _WINDOWS[n] = window
        return x * window
""",
        after="""\
_WINDOWS = {}


class Net(nn.Module):
    def forward(self, x):
        n = x.shape[-1]
        if not torch.compiler.is_compiling() and n in _WINDOWS:
            window = _WINDOWS[n]
        else:
            window = torch.linspace(0, 1, n, device=x.device).sin()
            if not torch.compiler.is_compiling():
                _WINDOWS[n] = window
        return x * window
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="handed back as an item",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.masks = {}

    def causal(self, x):
        n = x.shape[1]
        if n not in self.masks:
            self.masks[n] = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
        return self.masks[n]

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        return scores.masked_fill(~self.causal(x), 0.0) @ x
""",
        after="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.masks = {}

    def causal(self, x):
        n = x.shape[1]
        cached = None if torch.compiler.is_compiling() else self.masks.get(n)
        if cached is None:
            cached = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
            if not torch.compiler.is_compiling():
                self.masks[n] = cached
        return cached

    def forward(self, x):
        scores = x @ x.transpose(1, 2)
        return scores.masked_fill(~self.causal(x), 0.0) @ x
""",
        run=_RUN,
        unsafe=True,
    ),
    Example(
        title="a key that is a string",
        before="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        key = f"{x.shape[-2]}x{x.shape[-1]}"
        if key not in self.cache:
            self.cache[key] = torch.arange(x.shape[-1], device=x.device).sin()
        return x + self.cache[key]
""",
        after=None,
        run=_RUN,
    ),
    Example(
        title="a part of a larger test",
        before="""\
class Net(nn.Module):
    def __init__(self, keep=True):
        super().__init__()
        self.cache, self.keep = {}, keep

    def forward(self, x):
        n = x.shape[-1]
        if self.keep and n in self.cache:
            return x + self.cache[n]
        pos = torch.arange(n, device=x.device).sin()
        self.cache[n] = pos
        return x + pos
""",
        after=None,
        run=_RUN,
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="keys that are no sizes",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x, layer, name="a"):
        if layer in self.cache:
            x = x + self.cache[layer]
        self.cache[layer] = x
        if (x.device, x.dtype) not in self.cache:
            self.cache[x.device, x.dtype] = torch.ones(3, device=x.device)
        return x * self.cache[x.device, x.dtype].sum()
""",
    ),
    NearMiss(
        title="a dictionary that ends with the call, or that the caller gives",
        source="""\
class Net(nn.Module):
    def forward(self, xs, kept):
        seen = {}
        for x in xs:
            n = x.shape[-1]
            if n not in seen:
                seen[n] = torch.arange(n, device=x.device)
            if n not in kept:
                kept[n] = seen[n] + 1
        return seen, kept
""",
    ),
    NearMiss(
        title="never filled here: a table of what was configured",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = {4: 2, 8: 4}

    def forward(self, x):
        n = x.shape[-1]
        if n in self.heads:
            return x.unflatten(-1, (self.heads[n], -1))
        return x
""",
    ),
    NearMiss(
        title="eager code alone",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n = x.shape[-1]
        if not torch.compiler.is_compiling() and n in self.cache:
            return x + self.cache[n]
        pos = torch.arange(n, device=x.device).sin()
        if not torch.compiler.is_compiling():
            self.cache[n] = pos
        return x + pos
""",
    ),
    NearMiss(
        title="the key is another one below",
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n = x.shape[-1]
        if n in self.cache:
            return x + self.cache[n]
        n = x.shape[-2]
        self.cache[n] = x
        return x
""",
    ),
    NearMiss(
        title="filled at two places",
        reported=True,
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n = x.shape[-1]
        if n not in self.cache:
            self.cache[n] = torch.zeros(n, device=x.device)
            self.cache[n] = torch.arange(n, device=x.device).sin()
        return x + self.cache[n]
""",
    ),
    NearMiss(
        title="one item of what was filled in is read by another way",
        reported=True,
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n = x.shape[-1]
        if n not in self.cache:
            self.cache[n] = torch.arange(n, device=x.device).sin()
        return x + sum(v.sum() for v in self.cache.values())
""",
    ),
    NearMiss(
        title="what is read below may be what was found or what was filled in",
        reported=True,
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def forward(self, x):
        n = x.shape[-1]
        if n in self.cache:
            x = x * 2
        else:
            self.cache[n] = torch.arange(n, device=x.device).sin()
        return x + self.cache[n]
""",
    ),
    NearMiss(
        title="what was filled in is read by another method, or by a function in this one",
        reported=True,
        source="""\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cache = {}
        self.grids = {}

    def prepare(self, n, device):
        if n in self.cache:
            return
        self.cache[n] = torch.arange(n, device=device).sin()

    def forward(self, x):
        n = x.shape[-1]
        self.prepare(n, x.device)
        if n not in self.grids:
            self.grids[n] = torch.arange(n, device=x.device).cos()
        later = lambda: self.grids[n]
        return x + self.cache[n] + self.grids[n] + later()
""",
    ),
)
