"""Sources that were written to deceive FC101 and FC401: unchanged, or the same when they run."""

from __future__ import annotations

import ast

import pytest

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE, eager, equal

RULES = tuple(r for r in load_rules() if r.code in ("FC101", "FC401"))
SETTINGS = Settings(target_torch=(2, 6))
#: What most of them are run with: both arms of a test on the sum or the maximum.
RUN = """
def make(): return M()
calls = [(torch.ones(2, 3) * k,) for k in (1.0, -1.0, 9.0)]
"""


def outcome(text: str, run: str) -> tuple[object, ...]:
    """Outputs, arguments, gradients, aliases, and whatever ``state(module)`` tells, of eager calls."""
    ran = eager(f"{text}\n\n{run}\n")
    return list(ran.outputs), list(ran.aliases), ran.state, list(ran.gradients)


CASES = {
    "sum vs max int32": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.max() > 0:
            y = x.sum()
        else:
            y = x.max()
        return y * 1
""",
        """
def make(): return M()
calls=[(torch.ones(2,3).int()*k,) for k in (1,-1)]
""",
    ),
    "to(*a)": (
        """\
class M(nn.Module):
    def forward(self, x, a):
        p = x.to(*a)
        if x.sum() > 0:
            y = p * 2
        else:
            y = x * 2
        return y + 1
""",
        """
def make(): return M()
calls=[(torch.ones(2,3)*k,(torch.float64,)) for k in (1.,-1.)]
""",
    ),
    "int times cfg number": (
        """\
class M(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def forward(self, ids):
        ids = ids.long()
        if ids.sum() > 3:
            y = ids * self.cfg.k
        else:
            y = ids / 2
        return y + 1
""",
        """
import types
def make(): return M(types.SimpleNamespace(k=3))
calls=[(torch.tensor([1,k]),) for k in (0,9)]
""",
    ),
    "masked_fill broadcasts": (
        """\
class M(nn.Module):
    def forward(self, x):
        m = x > 0
        z = x[0].masked_fill(m, 2.0)
        row = x[0]
        if x.sum() > 0:
            y = row * 2
        else:
            y = row.masked_fill(m, 2.0)
        return y + 1
""",
        RUN,
    ),
    "sum != unknown 2": (
        """\
class M(nn.Module):
    def forward(self, x, target):
        if x.sum() != target:
            y = x * 2
        else:
            y = x * 3
        return y + 1
""",
        """
def make(): return M()
calls=[(torch.ones(2,3)*k,None) for k in (1.,-1.)]
""",
    ),
    "positive": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return torch.positive(x)
        return x * 2
""",
        RUN,
    ),
    "relu inplace": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            z = F.relu(y, inplace=True)
        else:
            z = y * 3
        return z + y
""",
        RUN,
    ),
    "out=": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        if x.sum() > 0:
            z = torch.abs(x, out=y)
        else:
            z = x * 3
        return z + y
""",
        RUN,
    ),
    "negative step": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x.unsqueeze(-1)
        if x.sum() > 0:
            z = x * y[::-1].sum()
        else:
            z = x * 2
        return z + 1
""",
        """
def make(): return M()
calls=[(-torch.ones(2,3),)]
""",
    ),
    "shape index": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            z = x * x.shape[2]
        else:
            z = x * 2
        return z + 1
""",
        """
def make(): return M()
calls=[(-torch.ones(2,3),)]
""",
    ),
    "as_tensor alias": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = torch.as_tensor(x)
        if y.abs().amax() > 3:
            y = y * 0.5
        return y
""",
        RUN,
    ),
    "chained assign": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = z = x * 1
        if y.abs().amax() > 3:
            y = y * 0.5
        return y, z
""",
        RUN,
    ),
    "augmented shared": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        y += 1
        z = y
        if y.abs().amax() > 3:
            y = y * 0.5
        return y, z
""",
        RUN,
    ),
    "rows of y": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        rows = []
        for row in y:
            rows.append(row)
        if y.abs().amax() > 3:
            y = y * 0.5
        return y, rows
""",
        RUN,
    ),
    "other name returned": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        if y.abs().amax() > 3:
            w = y * 0.5
        else:
            w = y
        return w, y
""",
        RUN,
    ),
    "param changed by method": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.abs().amax() > 3:
            w = x * 0.5
        else:
            w = x
        x.view(-1).mul_(2)
        return w * 2
""",
        RUN,
    ),
    "loop previous 2": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        w = x * 0
        out = []
        for i in range(3):
            out.append(w * 1)
            if y.sum() > 12:
                w = y * 2
            else:
                w = y
            y += 1
        return w * 2, out
""",
        RUN,
    ),
    "relu inplace module after 2": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        if x.abs().amax() > 3:
            x = x * 0.5
        return self.act(x) * 2
""",
        RUN,
    ),
    "closure changes": (
        """\
class M(nn.Module):
    def forward(self, x):
        def bump():
            x.add_(1)
        if x.sum() > 12:
            w = x * 2
        else:
            w = x
        bump()
        return w * 2
""",
        RUN,
    ),
    "two attrs one tensor": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('base', torch.ones(3))
        self.same = self.base

    @torch.no_grad()
    def forward(self, x):
        if x.sum() > 3:
            w = self.base * 2
        else:
            w = self.base
        self.same.add_(1)
        return x * w
""",
        RUN,
    ),
    "iadd method": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 3:
            w = x * 2
        else:
            w = x
        x.__iadd__(1)
        return w * 2
""",
        RUN,
    ),
    "phi in loop 2": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        z = 0 * x.sum()
        for i in range(4):
            w = y * 1
            if i % 2 == 1:
                y = torch.cat([y, y])
            if x.sum() > 0:
                v = w * 2
            else:
                v = y * 2
            z = z + v.sum()
        return z
""",
        RUN,
    ),
    "module reassigned": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)

    def grow(self):
        self.a = nn.Linear(3, self.a.out_features + 1)

    def forward(self, x):
        y = self.a(x)
        self.grow()
        w = self.a(x)
        if x.sum() > 0:
            z = y * 2
        else:
            z = w * 3
        return z + 1
""",
        RUN,
    ),
    "attr gets graph": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.register_buffer('gain', torch.ones(3))

    def forward(self, x):
        h = self.lin(x)
        if h.sum() > 1e6:
            self.gain = self.gain * h.mean()
        return h * self.gain
""",
        RUN
        + """train=True
""",
    ),
    "none against zeros 2": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.other = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        g = self.other(x)
        g = g.view_as(h)
        if x.sum() > 0:
            y = h * 2
        else:
            y = g * 2
        return y + 1
""",
        RUN
        + """train=True
""",
    ),
    "steep before norm": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        nn.init.zeros_(self.lin.weight)
        nn.init.zeros_(self.lin.bias)

    def forward(self, x):
        h = self.lin(x)
        n = torch.log(h.abs().max())
        if n > 1:
            y = h * n
        else:
            y = h * 2
        return y + 1
""",
        RUN
        + """train=True
""",
    ),
    "in-place steep": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        nn.init.zeros_(self.lin.weight)
        nn.init.zeros_(self.lin.bias)

    def forward(self, x):
        h = self.lin(x)
        n = h.abs().sum() * 1
        n.sqrt_()
        if h.sum() > 1e6:
            y = h * n
        else:
            y = h * 2
        return y * 1
""",
        RUN
        + """train=True
""",
    ),
    "mul math.inf": (
        """\
import math
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        if h.sum() > 1e6:
            y = h * math.inf
        else:
            y = h * 2
        return y * 1
""",
        RUN
        + """train=True
""",
    ),
    "guard twice": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 0

    def tick(self):
        self.n += 1
        return True

    def forward(self, x):
        if self.tick() and x.sum() > 0:
            a = x * 2
            b = x * 3
        else:
            a = x * 4
            b = x * 5
        return a + b
""",
        RUN
        + """def state(m): return m.n
""",
    ),
    "elif python test with effect": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        if x.sum() > 0:
            a = x * 2
        elif isinstance(self.seen.append(1), int):
            a = x * 3
        else:
            a = x * 4
        return a + 1
""",
        RUN
        + """def state(m): return len(m.seen)
""",
    ),
    "elif tensor index": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            a = x * 2
        elif x[1].sum() < -2:
            a = x * 3
        else:
            a = x * 4
        return a + 1
""",
        """
def make(): return M()
calls=[(torch.ones(1,3),),(-torch.ones(2,3,4),)]
""",
    ),
    "elif random": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            a = x * 2
        elif torch.rand(3).sum() > 0.5:
            a = x * 3
        else:
            a = x * 4
        return a + torch.rand(2, 3)
""",
        RUN,
    ),
    "late guard effect in tensor": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        if y.add_(1).sum() > 0 and self.training:
            a = y * 2
        else:
            a = y * 3
        return a + 1
""",
        """
def make(): return M().eval()
calls=[(torch.ones(2,3)*k,) for k in (1.,-1.,9.)]
""",
    ),
    "swap": (
        """\
class M(nn.Module):
    def forward(self, x):
        a = x * 2
        b = x * 3
        if x.sum() > 0:
            a, b = b, a
        return a - 2 * b
""",
        RUN,
    ),
    "semicolons": (
        """\
class M(nn.Module):
    def forward(self, x):
        a = x * 2
        b = x * 3
        if x.sum() > 0: a = x * 5; t = a + 1; b = t * 3
        return a - 2 * b
""",
        RUN,
    ),
    "temp tuple": (
        """\
class M(nn.Module):
    def forward(self, x):
        t = x * 5
        if x.sum() > 0:
            a, t = t * 2, x * 3
            b = t + 1
        else:
            a = x * 1
            b = x * 2
        return a - 2 * b
""",
        RUN,
    ),
    "three rotate": (
        """\
class M(nn.Module):
    def forward(self, x):
        a = x * 5
        b = x * 6
        c = x * 7
        if x.sum() > 0:
            a, b, c = c, a, b
        return a * 2 - b + 3 * c
""",
        RUN,
    ),
    "elif partial swapish": (
        """\
class M(nn.Module):
    def forward(self, x):
        s = x.sum()
        y = x * 7
        z = x * 8
        if s > 10: y, z = z, y
        elif s > 5: z = y * 3
        else: z, y = y * 6, z + 1
        return y - 2 * z
""",
        """
def make(): return M()
calls=[(torch.ones(2,3)*k,) for k in (2.,1.,.1,-.1,-2.)]
train=True
""",
    ),
    "guards and chain": (
        """\
class M(nn.Module):
    def forward(self, x):
        s = x.sum()
        if self.training and s > 3:
            y = x * 2
        elif not self.training and s > 1 and s < 100:
            y = x * 3
        elif self.training or s < -4:
            y = x * 5
        else:
            y = x * 6
        return y * 2
""",
        """
def make(): return M().eval()
calls=[(torch.ones(2,3)*k,) for k in (1.,-1.,9.)]
""",
    ),
    "nested def in no_grad": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            def f(s):
                if s > 0:
                    y = s.sqrt()
                else:
                    y = s * 2
                return y + 1
        return f(self.lin(x).sum())
""",
        RUN
        + """train=True
""",
    ),
    "nested with enable": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        nn.init.zeros_(self.lin.weight)
        nn.init.zeros_(self.lin.bias)

    def forward(self, x):
        with torch.no_grad():
            with torch.enable_grad():
                s = self.lin(x).abs().sum()
                if s > 1e6:
                    y = s.sqrt()
                else:
                    y = s * 2
        return y * self.lin(x)
""",
        RUN
        + """train=True
""",
    ),
    "no_grad alias used outside": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x)
        with torch.no_grad():
            if h.sum() > 1e6:
                y = h * 2
            else:
                y = h
        return y * 3
""",
        RUN
        + """train=True
""",
    ),
    "no_grad private": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    @torch.no_grad()
    def _pick(self, h):
        if h.sum() > 1e6:
            h = h * 2
        return h

    def forward(self, x):
        h = self.lin(x)
        return self._pick(h) * 2
""",
        RUN
        + """train=True
""",
    ),
    "subclass reassigns": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 0

    def forward(self, x):
        if x.mean() > self.limit:
            y = x.sum() * 2
        else:
            y = x.sum() * 3
        return y + 1


class Sub(M):
    def __init__(self):
        super().__init__()
        self.limit = torch.zeros(1, 1)
""",
        """
def make(): return Sub()
calls=[(torch.ones(2,3)*k,) for k in (1.,-1.,9.)]
""",
    ),
    "outside reassigns": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = 0

    def forward(self, x):
        if x.mean() > self.limit:
            y = x.sum() * 2
        else:
            y = x.sum() * 3
        return y + 1


def build():
    m = M()
    m.limit = torch.zeros(1, 1)
    return m
""",
        """
def make(): return build()
calls=[(torch.ones(2,3)*k,) for k in (1.,-1.,9.)]
""",
    ),
    "class attr overshadow": (
        """\
class M(nn.Module):
    k = 2.0

    def forward(self, x):
        if x.sum() > 1e9:
            y = x * self.k
        else:
            y = x * 3
        return y + 1


class S(M):
    k = "no"
""",
        """
def make(): return S()
calls=[(torch.ones(2,3)*k,) for k in (1.,-1.,9.)]
""",
    ),
    "attr only in a conditional init": (
        """\
class M(nn.Module):
    def __init__(self, on=False):
        super().__init__()
        if on:
            self.k = 2.0

    def forward(self, x):
        if x.sum() > 1e9:
            y = x * self.k
        else:
            y = x * 3
        return y + 1
""",
        RUN,
    ),
    "setter": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.sets = 0
        self.gain = torch.ones(3)

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "gain":
            super().__setattr__("sets", self.sets + 1)

    @torch.no_grad()
    def forward(self, x):
        if x.sum() > 0:
            self.gain = self.gain * 2
        return x + self.gain
""",
        RUN
        + """def state(m): return m.sets
""",
    ),
    "attr alias held elsewhere": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gain", torch.ones(3))
        self.same = self.gain

    @torch.no_grad()
    def forward(self, x):
        if x.sum() > 0:
            self.gain = self.gain * 2
        self.gain.add_(1)
        return self.same * 1
""",
        RUN,
    ),
    "builtin shadowed": (
        """\
class M(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = x * abs(2)
        else:
            y = x * 3
        return y + 1


SEEN = []
def abs(v):
    SEEN.append(v)
    return v
""",
        RUN
        + """def state(m): return len(SEEN)
""",
    ),
    "contiguous": (
        """\
class M(nn.Module):
    def forward(self, x):
        t = x.t()
        if x.sum() > 0:
            y = t * 2
        else:
            y = t.contiguous()
        y = y * 1
        return y.stride(), y
""",
        RUN,
    ),
    "random masks": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)
        self.proj = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids)
        other = h * 2
        h = h.clone()
        h[torch.rand_like(h) > 0.5] = other[torch.rand_like(h) > 0.5]
        return h, torch.rand(2)
""",
        """
def make(): return M()
calls=[(torch.tensor([[7]]),)]*8
""",
    ),
    "target expanded 2": (
        """\
class M(nn.Module):
    def spread(self, x):
        return x[:1].expand(2, 3)

    def forward(self, x):
        h = self.spread(x)
        m = h > 0
        z = h.abs()
        h[m] = z[m]
        return h * 1
""",
        RUN,
    ),
    "masked aug mul inf": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.other = nn.Linear(3, 3)
        self.k = float('inf')

    def forward(self, x):
        h = self.lin(x) * 1
        m = h > 0
        h[m] *= self.k
        return h
""",
        RUN
        + """train=True
""",
    ),
    "rows zero": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)
        self.proj = nn.Linear(4, 4)

    def forward(self, ids, feats):
        h = self.embed(ids).clone()
        r = self.proj(feats)
        h[ids == 7] = r.view(-1, 4).to(h.dtype)
        return h
""",
        """
def make(): return M()
places = (torch.tensor([[7, 8]]), torch.tensor([[1, 8]]), torch.zeros(0, 3).long())
calls = [(ids, torch.ones(k, 4)) for ids in places for k in (0, 1, 2)]
train = True
""",
    ),
    "one line suite": (
        """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)
        self.proj = nn.Linear(4, 4)
        self.row = nn.Parameter(torch.ones(4))

    def forward(self, ids):
        h = self.embed(ids).clone()
        if ids.dim() == 2: h[ids == 7] = self.row
        return h
""",
        """
def make(): return M()
calls=[(torch.tensor([[7,8,7]]),),(torch.tensor([[2,1,3],[9,10,11]]),)]
""",
    ),
    "same mask flip": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 1
        z = y.flip(0)
        m = y > 0
        y[m] = z.view_as(y)[m]
        return y
""",
        RUN,
    ),
    "empty": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 2
        if (y > 3).any():
            y = y + 1
        if (y > 3).all():
            y = y + 1
        return y * 2
""",
        """
def make(): return M()
calls=[(torch.zeros(0),),(torch.zeros(0,3),),(torch.tensor(4.),)]
""",
    ),
    "nan test": (
        """\
class M(nn.Module):
    def forward(self, x):
        y = x * 2
        if y.max():
            y = y + 1
        return y * 2
""",
        """
def make(): return M()
calls=[(torch.ones(2,3)*k,) for k in (0.,1.,-1.,float('nan'))]
""",
    ),
    "fstring": (
        """\
class M(nn.Module):
    def forward(self, x):
        return f"{x.sum() * 2 if x.sum() > 0 else x.sum() * 3}", f'{(x.sum() * 2 if x.sum() > 0 else x.sum() * 3) + 1}'
""",
        RUN,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_unchanged_or_equal(name: str) -> None:
    source, run = CASES[name]
    text = f"{PREAMBLE}\n\n{source}"
    result = patch(text, "m.py", RULES, SETTINGS)
    assert result.bugs == ()
    if result.text == text:
        return
    ast.parse(result.text)
    assert patch(result.text, "m.py", RULES, SETTINGS).text == result.text
    *before, gradients = outcome(text, run)
    *after, new_gradients = outcome(result.text, run)
    assert equal(before, after) is None, result.text
    assert equal(gradients, new_gradients, 1e-5, "gradient") is None, result.text
