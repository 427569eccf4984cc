"""What SplitForward reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import (
    Example,
    NearMiss,
)
from patcher.settings import Varied

_HOOK = """
def hook(obj, be):
    if hasattr(obj, "_forward_core"):
        obj._forward_core = torch.compile(obj._forward_core, backend=be)
        return obj
    return torch.compile(obj, backend=be)
"""

_PARTS = (
    """
def make():
    return Net()

calls = [(torch.ones(3, 4), [torch.ones(1, 4) * i for i in range(n)]) for n in (1, 2, 3, 4, 5)]
"""
    + _HOOK
)

INVALID: tuple[Example, ...] = (
    Example(
        title="parts that a method puts together",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def _gather(self, parts):
        if isinstance(parts, list):
            parts = [p for part in parts for p in (part if isinstance(part, list) else [part])]
            return torch.cat(parts, 0) if parts else None
        return parts

    def forward(self, x, parts, scale=1.0):
        \"\"\"One number a row.\"\"\"
        y = self._gather(parts)
        h = self.lin(x)
        if y is not None:
            h = h + y.mean()
        return h * scale
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def _gather(self, parts):
        if isinstance(parts, list):
            parts = [p for part in parts for p in (part if isinstance(part, list) else [part])]
            return torch.cat(parts, 0) if parts else None
        return parts

    def forward(self, x, parts, scale=1.0):
        \"\"\"One number a row.\"\"\"
        y = self._gather(parts)
        return self._forward_core(x, y, scale)

    def _forward_core(self, x, y, scale=1.0):
        h = self.lin(x)
        if y is not None:
            h = h + y.mean()
        return h * scale
""",
        run=_PARTS,
        unsafe=True,
        evidence=(Varied("", "Net.forward", "parts", None),),
    ),
    Example(
        title="comments, annotations and a name that gets another value",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @torch.no_grad()
    def forward(self, x: torch.Tensor, parts: list[torch.Tensor], *, scale: float = -1.0, shift=()) -> torch.Tensor:
        device = x.device
        if isinstance(parts, (list, tuple)):
            parts = torch.stack(list(parts)).to(device)  # one more dimension

        # rows
        h = self.lin(x)
        total = h * parts.mean() \\
            * scale
        return total  # the end
        # nothing below

    def extra_repr(self):
        return "net"
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @torch.no_grad()
    def forward(self, x: torch.Tensor, parts: list[torch.Tensor], *, scale: float = -1.0, shift=()) -> torch.Tensor:
        device = x.device
        if isinstance(parts, (list, tuple)):
            parts = torch.stack(list(parts)).to(device)  # one more dimension

        return self._forward_core(x, parts, scale)

    def _forward_core(self, x: torch.Tensor, parts, scale: float = -1.0) -> torch.Tensor:
        # rows
        h = self.lin(x)
        total = h * parts.mean() \\
            * scale
        return total  # the end
        # nothing below

    def extra_repr(self):
        return "net"
""",
        run=_PARTS,
        unsafe=True,
        evidence=(Varied("", "Net.forward", "parts", None),),
    ),
    Example(
        title="the model is compiled in the same file",
        before="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, parts):
        total = torch.zeros(1)
        for part in parts:
            total = total + part.sum()
        return self.lin(x) + total


def build(backend="eager"):
    net = Net().eval()
    net = net.to("cpu")
    net = torch.compile(net, backend=backend)  # all of it
    return net


def build_at_once(backend="eager"):
    net = torch.compile(Net(), backend=backend, dynamic=None)
    return net


def build_in_place(backend="eager"):
    net = Net()
    net.compile(backend=backend)
    return net
""",
        after="""class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, parts):
        total = torch.zeros(1)
        for part in parts:
            total = total + part.sum()
        return self._forward_core(x, total)

    def _forward_core(self, x, total):
        return self.lin(x) + total


def build(backend="eager"):
    net = Net().eval()
    net = net.to("cpu")
    net._forward_core = torch.compile(net._forward_core, backend=backend)  # all of it
    return net


def build_at_once(backend="eager"):
    net = Net()
    net._forward_core = torch.compile(net._forward_core, backend=backend, dynamic=None)
    return net


def build_in_place(backend="eager"):
    net = Net()
    net._forward_core = torch.compile(net._forward_core, backend=backend)
    return net
""",
        run="""
def make():
    return build()

def hook(obj, be):
    models = [build(be), build_at_once(be), build_in_place(be)]
    for p, *others in zip(obj.parameters(), *(m.parameters() for m in models)):
        for other in others:
            other.data.copy_(p.data)
    return lambda x, parts: models[len(parts) % 3](x, parts)

calls = [(torch.ones(3, 4), [torch.ones(1, 4) * i for i in range(n)]) for n in (1, 2, 3, 4, 5)]
""",
        unsafe=True,
        evidence=(Varied("", "Net.forward", "parts", None),),
    ),
    Example(
        title="two lists, and a list that grows with them",
        before="""class Net(nn.Module):
    def forward(self, x, parts, more=(), flag=None):
        sizes = []
        for part in parts:
            sizes.append(part.shape[0])
        rows = torch.tensor(sizes)
        count = len(more)
        if flag is None:
            flag = x.is_floating_point()
        others = [*parts, *more]
        y = torch.cat(others)
        scale = rows.sum() if flag else count
        return x.sum() * y.amax() + scale
""",
        after="""class Net(nn.Module):
    def forward(self, x, parts, more=(), flag=None):
        sizes = []
        for part in parts:
            sizes.append(part.shape[0])
        rows = torch.tensor(sizes)
        count = len(more)
        if flag is None:
            flag = x.is_floating_point()
        others = [*parts, *more]
        y = torch.cat(others)
        return self._forward_core(x, flag, rows, count, y)

    def _forward_core(self, x, flag, rows, count, y):
        scale = rows.sum() if flag else count
        return x.sum() * y.amax() + scale
""",
        run=_PARTS,
        unsafe=True,
        evidence=(Varied("", "Net.forward", "parts", None), Varied("", "Net.forward", "more", None)),
    ),
    Example(
        title="functions of the rest that read what was prepared",
        before="""class Base(nn.Module):
    def finish(self, h):
        return h * 2


class Net(Base):
    def forward(self, x, parts, depth=2):
        if not parts:
            return x
        y = sum(p.mean() for p in parts)

        def step(h, y=y):
            return h + y * depth

        steps = [step, lambda x: x - y]
        for f in steps:
            x = f(x)
        depth += 1
        return super().finish(x) * depth
""",
        after="""class Base(nn.Module):
    def finish(self, h):
        return h * 2


class Net(Base):
    def forward(self, x, parts, depth=2):
        if not parts:
            return x
        y = sum(p.mean() for p in parts)

        return self._forward_core(x, y, depth)

    def _forward_core(self, x, y, depth=2):
        def step(h, y=y):
            return h + y * depth

        steps = [step, lambda x: x - y]
        for f in steps:
            x = f(x)
        depth += 1
        return super().finish(x) * depth
""",
        run=_PARTS,
        unsafe=True,
        evidence=(Varied("", "Net.forward", "parts", None),),
    ),
    Example(
        title="seen in the method that prepares",
        before="""class Net(nn.Module):
    def _gather(self, items, device):
        torch._dynamo.graph_break()
        return torch.cat([item.to(device) for item in items])

    def forward(self, x, parts):
        y = self._gather(parts, x.device)
        h = x.sin() + y.mean()
        return h.cos()
""",
        after="""class Net(nn.Module):
    def _gather(self, items, device):
        torch._dynamo.graph_break()
        return torch.cat([item.to(device) for item in items])

    def forward(self, x, parts):
        y = self._gather(parts, x.device)
        return self._forward_core(x, y)

    def _forward_core(self, x, y):
        h = x.sin() + y.mean()
        return h.cos()
""",
        run=_PARTS,
        unsafe=True,
        evidence=(Varied("", "Net._gather", "items", None),),
    ),
)

VALID: tuple[NearMiss, ...] = (
    NearMiss(
        title="nothing has varied",
        source="""class Net(nn.Module):
    def forward(self, x, parts):
        y = torch.cat(parts)
        x = x + y.mean()
        return x.sin()
""",
    ),
    NearMiss(
        title="a size has varied, no list",
        source="""class Net(nn.Module):
    def forward(self, x, parts):
        y = torch.cat(parts)
        x = x + y.mean()
        return x.sin()
""",
        evidence=(Varied("", "Net.forward", "x", 0),),
    ),
    NearMiss(
        title="split already",
        source="""class Net(nn.Module):
    def forward(self, x, parts, **more):
        y = torch.cat(parts)
        return self.compute(x, y=y, **more)

    def compute(self, x, y):
        x = x + y.mean()
        return x.sin()
""",
        evidence=(Varied("", "Net.forward", "parts", None),),
    ),
    NearMiss(
        title="no module's forward",
        source="""class Plan:
    def forward(self, x, parts):
        y = torch.cat(parts)
        x = x + y.mean()
        return x.sin()


def forward(x, parts):
    y = torch.cat(parts)
    x = x + y.mean()
    return x.sin()
""",
        evidence=(Varied("", "Plan.forward", "parts", None), Varied("", "forward", "parts", None)),
    ),
    NearMiss(
        title="a name that has no value on some path",
        source="""class Net(nn.Module):
    def forward(self, x, parts):
        if parts:
            y = torch.cat(parts)
        x = x + 1
        if self.training:
            x = x + y.mean()
        return x.sin()
""",
        reported=True,
        evidence=(Varied("", "Net.forward", "parts", None),),
    ),
    NearMiss(
        title="the method is there, in a class below",
        source="""class Net(nn.Module):
    def forward(self, x, parts):
        y = torch.cat(parts)
        x = x + y.mean()
        return x.sin()


class Wide(Net):
    def _forward_core(self, x):
        return x
""",
        reported=True,
        evidence=(Varied("", "Net.forward", "parts", None),),
    ),
    NearMiss(
        title="a decorator about all of it, and one that is a generator",
        source="""class Net(nn.Module):
    @torch.compile(backend="eager")
    def forward(self, x, parts):
        y = torch.cat(parts)
        x = x + y.mean()
        return x.sin()


class Lazy(nn.Module):
    def forward(self, x, parts):
        y = torch.cat(parts)
        yield x + y.mean()
        yield x
""",
        reported=True,
        evidence=(Varied("", "Net.forward", "parts", None), Varied("", "Lazy.forward", "parts", None)),
    ),
    NearMiss(
        title="a function of the preparation that reads what changes later",
        source="""class Net(nn.Module):
    def forward(self, x, parts):
        y = torch.cat([p + (lambda: x.mean())() for p in parts])
        later = (x * p for p in [y])
        x = x + y.mean()
        return x.sin() + sum(later)


class Told(nn.Module):
    def forward(self, x, parts):
        y = torch.cat(parts)
        scale = lambda t: t * y.mean()
        del parts
        x = scale(x)
        return x.sin()
""",
        reported=True,
        evidence=(Varied("", "Net.forward", "parts", None), Varied("", "Told.forward", "parts", None)),
    ),
)
