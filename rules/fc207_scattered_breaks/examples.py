"""What ScatteredBreaks reports and rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss
from patcher.settings import Extent


def _shown(*functions: str) -> tuple[Extent, ...]:
    return tuple(Extent("", name, 2, 3, 9, 14, 21, 80) for name in functions)


_KERNEL = """\
class Kernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def squared(self, a, b, same):
        if same:
            return (a.unsqueeze(-1) - a.unsqueeze(-2)) ** 2
        return (a.unsqueeze(-1) - b.unsqueeze(-2)) ** 2

    def distance(self, a, b):
        return self.squared(a, b, torch.equal(a, b)).sqrt()

    {decorator}def covariance(self, a, b):
        \"\"\"Of all pairs.\"\"\"
        return self.scale * torch.exp(-self.distance(a, b))

    def forward(self, x, y):
        x, y = x * 2 - 1, y * 2 - 1
        cross = self.covariance(x, y)  # other points
        return self.covariance(x, x) @ cross + cross.mean()
"""
_POINTS = """\
train = True
def make(): return Kernel()
calls = [(torch.linspace(0, 1, n), torch.linspace(1, 2, n)) for n in (3, 5)]
"""
_SOLVER = """\
def error_of(y, step):
    return (torch.sin(y) * step).abs().max()


def refined(y, step):
    if error_of(y, step) > 0.1:
        step = step / 2
    if error_of(y, step) < 0.01:
        step = step * 4
    return step


{decorator}def advance(y, step):
    step = refined(y, step)
    return y + step * torch.sin(y), refined(y, step)


class Solver(nn.Module):
    def forward(self, y, step):
        y = y * 1.5
        for _ in range(2):
            y, step = advance(y, step)
        return y.tanh(), step
"""
_STEPS = """\
train = True
def make(): return Solver()
calls = [(torch.ones(n), torch.tensor(s)) for n, s in ((3, 0.5), (4, 0.001))]
"""
_STATIC = """\
class Losses(nn.Module):
    @staticmethod
    {decorator}def reduced(values, weights):
        kept = values[values > 0.5]
        if kept.sum() > 3:
            kept = kept / kept.sum()
        return kept.sum() * weights.sum()

    def weighed(self, values, weights):
        return self.reduced(values * weights, weights) + 1

    def forward(self, x, w):
        x, w = x.softmax(-1) * 4, w.sigmoid()
        return self.weighed(x, w) * x + self.weighed(x * 2, w)
"""
_LOSSES = """\
train = True
def make(): return Losses()
calls = [(torch.linspace(0, 3, n), torch.linspace(0, 1, n)) for n in (4, 6)]
"""
_MEMO = """\
import functools


def remembered(method):
    @functools.wraps(method)
    def asked(self):
        if self.known is None:
            self.known = method(self)
        return self.known

    return asked


class Operator:
    def __init__(self, matrix):
        self.matrix = matrix
        self.known = None

    def jittered(self, by):
        found, info = torch.linalg.cholesky_ex(self.matrix + by * torch.eye(len(self.matrix)))
        if info.any():
            return self.jittered(by * 10)
        return found

    @remembered
    {decorator}def root(self):
        if not (self.matrix == self.matrix.T).all():
            raise ValueError("not symmetric")
        return self.jittered(1e-6)


class Process(nn.Module):
    def forward(self, x, y):
        operator = Operator(x @ x.T + 1)
        return torch.cholesky_solve(y, operator.root()), operator.root().diagonal()
"""
_MATRICES = """\
def make(): return Process()
calls = [(torch.eye(n) + 1, torch.ones(n, 2)) for n in (2, 3)]
"""
_CLASS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(2, 2)

    @staticmethod
    def chosen(rows, above):
        return rows[rows.sum(-1) > above]

    @classmethod
    @torch.no_grad()
    {decorator}def level(cls, rows):
        high = cls.chosen(rows, 1.0)
        if high.numel() > 2 and high.mean() > 1:
            return high.mean()
        return cls.chosen(rows, -9.0).mean()

    def forward(self, rows):
        rows = self.lin(rows)
        return rows - self.level(rows), rows.tanh() * self.level(rows * 2)
"""
_BATCHES = """\
train = True
def make(): return Net()
calls = [(torch.linspace(0, n, 8).view(4, 2),) for n in (1, 3)]
"""
_CALLED = """\
class Miner:
    def __init__(self, margin):
        self.margin = margin

    def pairs(self, labels):
        return torch.where(labels.unsqueeze(0) == labels.unsqueeze(1))

    {decorator}def __call__(self, x, labels):
        a, b = self.pairs(labels)
        distances = (x[a] - x[b]).norm(dim=-1)
        hard = distances[distances < self.margin]
        if len(hard) == 0:
            return x.sum() * 0
        return hard.mean()


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(2, 2)
        self.miner = Miner(4.0)

    def forward(self, x, labels):
        x = self.embed(x).relu()
        return self.miner(x, labels) + x.mean() + self.miner(x * 2, labels)
"""
_LABELS = """\
train = True
def make(): return Loss()
calls = [(torch.linspace(0, 1, 2 * n).view(n, 2), torch.arange(n) % 2) for n in (4, 6)]
"""


def _both(title: str, text: str, run: str, function: str) -> Example:
    indent = text.partition("{decorator}")[0].rpartition("\n")[2]
    after = text.replace("{decorator}", f"@torch.compiler.disable\n{indent}")
    return Example(text.replace("{decorator}", ""), after, run, title, unsafe=True, extents=_shown(function))


INVALID: tuple[Example, ...] = (
    _both("which formula is used is decided three calls deep", _KERNEL, _POINTS, "Kernel.covariance"),
    _both("steps of a solver that are decided by data, in a loop", _SOLVER, _STEPS, "advance"),
    _both("a static method that two ways lead to", _STATIC, _LOSSES, "Losses.reduced"),
    _both("below a decorator of the project that remembers", _MEMO, _MATRICES, "Operator.root"),
    _both("a class method without gradients", _CLASS, _BATCHES, "Net.level"),
    _both("an object that is called", _CALLED, _LABELS, "Miner.__call__"),
    Example(
        title="what makes it anew with every call is compiled, and only told of",
        before="""\
class Net(nn.Module):
    def forward(self, x):
        def level(rows):
            if rows.sum() > 3:
                return rows.mean()
            return rows.amax()

        x = x * 2
        return x - level(x), x + level(x + 1)
""",
        after=None,
        run="""\
def make(): return Net()
calls = [(torch.ones(n),) for n in (2, 5)]
""",
        extents=_shown("Net.forward.level"),
    ),
)


_NET = """\
class Net(nn.Module):
{body}

    def forward(self, x):
        return self.level(x) * x
"""
_PLAIN = """\
    def level(self, x):
        if x.sum() > 3:
            return x.mean()
        return x.amax()"""


def _miss(title: str, body: str, *functions: str, reported: bool = True) -> NearMiss:
    return NearMiss(_NET.format(body=body), title, reported, extents=_shown(*(functions or ("Net.level",))))


VALID: tuple[NearMiss, ...] = (
    NearMiss(_NET.format(body=_PLAIN), "no run has shown anything"),
    _miss("a run has shown another function", _PLAIN, "Net.levels", "level", "Other.level", reported=False),
    _miss("it is left out already", f"    @torch.compiler.disable\n{_PLAIN}", reported=False),
    _miss(
        "it is left out already, but for what it calls",
        f"    @torch._dynamo.disable(recursive=False)\n{_PLAIN}",
        reported=False,
    ),
    _miss("the model itself", _PLAIN, "Net.forward"),
    _miss("it is compiled by a decorator", f"    @torch.compile\n{_PLAIN}"),
    _miss("TorchScript takes it", f"    @torch.jit.export\n{_PLAIN}"),
    NearMiss(
        _NET.format(body=_PLAIN) + "\n\nnet = Net()\nnet.level = torch.compile(net.level)\n",
        "a call compiles it",
        reported=True,
        extents=_shown("Net.level"),
    ),
    NearMiss(
        """\
class Net(nn.Module):
    def parts(self, x):
        for row in x:
            if row.sum() > 3:
                yield row * 2

    def forward(self, x):
        return sum(self.parts(x))
""",
        "a generator, whose body runs where it is asked",
        reported=True,
        extents=_shown("Net.parts"),
    ),
    NearMiss(
        """\
class Box:
    def __init__(self, x):
        self.x = x / 2 if x.sum() > 3 else x

    def __bool__(self):
        return bool(self.x.sum() > 2)


class Net(nn.Module):
    def forward(self, x):
        box = Box(x * 2)
        return box.x + 1 if box else box.x
""",
        "methods that Python calls by itself",
        reported=True,
        extents=_shown("Box.__init__", "Box.__bool__"),
    ),
    _miss(
        "whoever wrote it has looked at how it is compiled",
        _PLAIN.replace("        if", "        # compiled in two parts, on purpose: torch.compile\n        if"),
    ),
    NearMiss(
        """\
@torch.library.custom_op("zone::level", mutates_args=())
def level(x: torch.Tensor) -> torch.Tensor:
    return x.mean() if x.sum() > 3 else x.amax()


class Net(nn.Module):
    def forward(self, x):
        return level(x) * x
""",
        "what an operator is made of",
        reported=True,
        extents=_shown("level"),
    ),
)
