"""FC402: a read through a boolean mask."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Category, Facts, MaskedRead, RowCall, RowRegion
from patcher.rule import (
    Applicability,
    Code,
    Cost,
    Enclose,
    Example,
    Finding,
    Fix,
    NearMiss,
    Replace,
    ReplaceStatements,
    filled,
)


class MaskRead:
    """A read ``x[mask]`` (or ``masked_select``) with a boolean mask: how many rows it has is known only at run time.

    What it does:
        Asks for the same without the read: ``x[mask].numel()``, ``x[mask].shape[0]`` and ``len(x[mask])`` count the
        mask; ``x[mask].sum()``, ``mean``, ``any`` and ``all`` reduce ``x`` with the other places filled in;
        ``y[mask] = f(x[mask])`` with an element-wise ``f`` becomes ``y.copy_(torch.where(mask, f(x), y))``.

        ``y[mask] = g(x[mask])`` with a function ``g`` of the same file that works along last dimensions gives ``g`` all
        rows, with the first row that is set in the place of those that are not, and keeps what the mask selects.

        Statements that give rows to modules and write them back (``h[mask] += mlp(norm(h[mask]))``, ``masked_scatter``)
        get a second form for compiled code: all rows are computed, and ``torch.where`` picks by the mask.

    Why it breaks compilation:
        The size of ``x[mask]`` depends on data: the graph ends there, and inside of a loop the whole frame is dropped.

    Fix safety:
        Safe for counts when it is proven that the mask is a boolean tensor with the leading shape of ``x``, and that a
        0-d tensor may stand where the number stood: in a comparison with an int that is tested, put in a message, or
        handed to a function of the project that does nothing but check it. Safe for ``any`` and ``all`` of boolean and
        ``sum`` of integer tensors, and for assignments that add, subtract, multiply and the like without a chance of
        an error or of an infinite gradient at the places that are left out. Unsafe for ``sum`` and ``mean`` of floats:
        they add up in another order. Unsafe for a function of rows: it is taken to treat each by itself, and one row at
        least to be set. Unsafe for what modules do to rows, in compiled code only: by cost and rounding, and because
        each row has to be computed by itself, which is taken for granted of the modules that the finding names unless
        this file shows the opposite. Rows that the mask leaves out must not raise or send an infinite gradient; values
        of another dtype than what they are written to are no error there, and dropout draws other numbers. A mask on
        another device than ``x`` is no error any more where only the count is asked for. What is packed by the mask and
        handed on is reported, not rewritten.

    References:
        PyTorch, "Dynamic shape operator" (graph break GB0036).
    """

    code: ClassVar[str] = "FC402"
    name: ClassVar[str] = "mask-read"
    triggers: ClassVar[tuple[bytes, ...]] = (b"]",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Subscript, ast.Call)
    fixed_in: ClassVar[tuple[int, int] | None] = None
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it reads through a mask in compiled code."""
        assert isinstance(node, (ast.Subscript, ast.Call))
        if isinstance(node, ast.Call) and not ast.unparse(node.func).endswith("masked_select"):
            return
        if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.Slice)):
            return
        if not facts.reached(node) or facts.eager_only(node) or (read := facts.masked_reads.of(node)) is None:
            return
        rows = facts.row_calls.of(facts.statement_of(node))
        if facts.masked_reads.assigned_as_it_is(read) or (rows is not None and node is not rows.reads[0]):
            return  # FC401; told with the first one
        form = _Form(facts, read, rows)
        outcome = form.fix()
        region = facts.row_regions.holding(facts.statement_of(node)) if isinstance(outcome, str) else None
        if region is not None:
            if node is not region.first:
                return  # told with the first one
            outcome = form.over_all(region)
        fix, reason = (outcome, form.assumption) if isinstance(outcome, Fix) else (None, outcome)
        yield Finding(node, "what a mask selects has a data-dependent size", fix, reason)

    invalid: ClassVar[tuple[Example, ...]] = (
        Example(
            title="elements are counted to check them; the mask has the shape of what it reads",
            before="""\
def require(ok, message):
    if torch.is_tensor(ok):
        torch._assert_async(ok.all(), message)
    else:
        torch._check_with(ValueError, ok, lambda: message)

class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids: torch.Tensor | None, features: torch.Tensor):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        require(h[spread].numel() == features.numel(), "no fit")  # as many as there are places
        return h.masked_scatter(spread, features)
""",
            after="""\
def require(ok, message):
    if torch.is_tensor(ok):
        torch._assert_async(ok.all(), message)
    else:
        torch._check_with(ValueError, ok, lambda: message)

class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids: torch.Tensor | None, features: torch.Tensor):
        h = self.embed(ids)
        slots = ids == 7
        spread = slots.unsqueeze(-1).expand_as(h)
        require(spread.sum() == features.numel(), "no fit")  # as many as there are places
        return h.masked_scatter(spread, features)
""",
            run="""\
def make(): return Merge()
calls = [(torch.tensor([[7, 1, 7]]), torch.ones(n, 4)) for n in (2, 3)]
""",
        ),
        Example(
            title="rows are counted for a function that only checks; a name holds the number",
            before="""\
def require(ok, message):
    if isinstance(ok, torch.Tensor):
        torch._assert_async(ok.all(), message)
    else:
        torch._check(ok, lambda: message)

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids, rows: torch.Tensor):
        h = self.embed(ids)
        count = h[ids == 7].shape[0]
        require(count == rows.shape[0], "rows must fit the places")
        require(h[ids == 7].numel() == rows.numel(), message="numbers must fit the places")
        return h * 2
""",
            after="""\
def require(ok, message):
    if isinstance(ok, torch.Tensor):
        torch._assert_async(ok.all(), message)
    else:
        torch._check(ok, lambda: message)

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids, rows: torch.Tensor):
        h = self.embed(ids)
        count = (ids == 7).sum()
        require(count == rows.shape[0], "rows must fit the places")
        require(((ids == 7).sum() * h.shape[-1]) == rows.numel(), message="numbers must fit the places")
        return h * 2
""",
            run="""\
def make(): return Rows()
calls = [(torch.tensor([[7, 1, 7]]), torch.ones(2, 4)), (torch.tensor([[1, 1, 7]]), torch.ones(1, 4))]
""",
        ),
        Example(
            title="any, all, and the sum of integers",
            before="""\
class Ask(nn.Module):
    def forward(self, x):
        y = x * 2
        seen = y > 0
        low = torch.isnan(y) | (y < 3)
        counts = torch.argsort(y)
        return low[seen].any(), low[seen].all(), counts[seen].sum()
""",
            after="""\
class Ask(nn.Module):
    def forward(self, x):
        y = x * 2
        seen = y > 0
        low = torch.isnan(y) | (y < 3)
        counts = torch.argsort(y)
        return (low & seen).any(), (low | (~seen)).all(), counts.masked_fill(~seen, 0).sum()
""",
            run="""\
def make(): return Ask()
calls = [(torch.tensor(v),) for v in ([1.0, 2.0, -1.0], [-1.0, -2.0, -3.0], [0.5, float("nan"), 1.0])]
""",
        ),
        Example(
            title="written with functions, and as masked_select",
            before="""\
class Spelled(nn.Module):
    def forward(self, x):
        y = x * 2
        seen = torch.isfinite(y) & (y > 0)
        order = torch.argsort(y)
        kept = torch.masked_select(order, seen).sum()
        return torch.any(seen[y < 3]), torch.sum(order[seen]), kept + torch.sum(order.masked_select(~seen))
""",
            after="""\
class Spelled(nn.Module):
    def forward(self, x):
        y = x * 2
        seen = torch.isfinite(y) & (y > 0)
        order = torch.argsort(y)
        kept = order.masked_fill(~seen, 0).sum()
        return (seen & (y < 3)).any(), order.masked_fill(~seen, 0).sum(), kept + order.masked_fill(seen, 0).sum()
""",
            run="""\
def make(): return Spelled()
calls = [(torch.tensor(v),) for v in ([1.0, 2.0, -1.0], [-1.0, -2.0, -3.0], [0.5, float("inf"), 1.0])]
""",
        ),
        Example(
            title="the mean of a loss over the places that count",
            before="""\
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, goal):
        loss = self.lin(x).square()
        kept = loss > 0.01
        return loss[kept].mean()
""",
            after="""\
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x, goal):
        loss = self.lin(x).square()
        kept = loss > 0.01
        return loss.masked_fill(~kept, 0).sum() / kept.sum()
""",
            run="""\
def make(): return Loss()
calls = [(torch.linspace(-1, 1, 8).view(2, 4), torch.ones(1))]
train = True
""",
            unsafe=True,
        ),
        Example(
            title="the sum of rows",
            before="""\
class Total(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids)
        return h[ids > 3].sum()
""",
            after="""\
class Total(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids)
        return h.masked_fill(~(ids > 3)[..., None], 0).sum()
""",
            run="""\
def make(): return Total()
calls = [(torch.tensor([[7, 1, 7]]),), (torch.tensor([[1, 1, 2]]),)]
train = True
""",
            unsafe=True,
        ),
        Example(
            title="changed element by element and written back",
            before="""\
class Flip(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        other = h * 3
        low = ids < 7
        h[low] = (2 * other[low] - h[low]) / 4  # in place
        return h, other
""",
            after="""\
class Flip(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        other = h * 3
        low = ids < 7
        h.copy_(torch.where(low.unsqueeze(-1), (2 * other - h) / 4, h))  # in place
        return h, other
""",
            run="""\
def make(): return Flip()
calls = [(torch.tensor(v),) for v in ([[7, 1, 7]], [[1, 1, 2]])]
train = True
""",
        ),
        Example(
            title="bounded and written back, without gradients",
            before="""\
class Bound(nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor):
        h = x * 1
        low = h < 0
        h[low] = -h[low].abs().clamp(max=2)
        return h
""",
            after="""\
class Bound(nn.Module):
    @torch.no_grad()
    def forward(self, x: torch.Tensor):
        h = x * 1
        low = h < 0
        h.copy_(torch.where(low, -h.abs().clamp(max=2), h))
        return h
""",
            run="""\
def make(): return Bound()
calls = [(torch.linspace(-1, 1, 8).view(2, 4) * k,) for k in (1.0, 9.0)]
""",
        ),
        Example(
            title="a function of rows, written back at the same places",
            before="""\
def bent(x, weights, scale):
    share = F.softmax(weights, dim=-1)
    bins = share.cumsum(-1)
    return torch.sqrt(x) * bins[..., 0] * scale, torch.log(x)

class Spline(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.wide = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h, weights = self.lin(x), self.wide(x.unsqueeze(-1).expand(-1, -1, 4))
        inside = h > 0
        out = torch.zeros_like(h)
        size = torch.zeros_like(h)
        out[inside], size[inside] = bent(h[inside], weights=weights[inside, :], scale=2.0)
        return out + size
""",
            after="""\
def bent(x, weights, scale):
    share = F.softmax(weights, dim=-1)
    bins = share.cumsum(-1)
    return torch.sqrt(x) * bins[..., 0] * scale, torch.log(x)

class Spline(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.wide = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x):
        h, weights = self.lin(x), self.wide(x.unsqueeze(-1).expand(-1, -1, 4))
        inside = h > 0
        out = torch.zeros_like(h)
        size = torch.zeros_like(h)
        _places = inside.flatten()
        _rows = torch.where(_places, torch.arange(_places.numel(), device=_places.device), _places.int().argmax())
        _values, _values_2 = bent(
            h.flatten(0, inside.ndim - 1)[_rows],
            weights=weights.flatten(0, inside.ndim - 1)[_rows],
            scale=2.0,
        )
        out.copy_(torch.where(inside, _values.reshape(out.shape), out))
        size.copy_(torch.where(inside, _values_2.reshape(size.shape), size))
        return out + size
""",
            run="""\
def make(): return Spline()
calls = [(torch.linspace(-k, k, 8).view(2, 4),) for k in (1.0, 9.0)]
train = True
""",
            unsafe=True,
        ),
        Example(
            title="packed rows are reported",
            before="""\
class Pack(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        return self.lin(h[h.sum(-1) > 0])
""",
            after=None,
            run="""\
def make(): return Pack()
calls = [(torch.linspace(-1, 1, 8).view(2, 4),)]
""",
        ),
        Example(
            title="an expert for some rows, another one for the others",
            before="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.words = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 5))
        self.picture = nn.Linear(4, 5)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        out = torch.empty(*ids.shape, 5)
        # one for words, one for pictures
        out[seen] = self.picture(h[seen])
        out[~seen] = self.words(h[~seen])
        return out
""",
            after="""\
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.words = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 5))
        self.picture = nn.Linear(4, 5)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        out = torch.empty(*ids.shape, 5)
        # one for words, one for pictures
        if torch.compiler.is_compiling():
            _rows = self.picture(h.flatten(0, seen.dim() - 1).clone())
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            out.copy_(torch.where(_picked, _rows, out.flatten(0, seen.dim() - 1)).reshape(out.shape))
            _rows = self.words(h.flatten(0, seen.dim() - 1).clone())
            _picked = (~seen).reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            out.copy_(torch.where(_picked, _rows, out.flatten(0, seen.dim() - 1)).reshape(out.shape))
        else:
            out[seen] = self.picture(h[seen])
            out[~seen] = self.words(h[~seen])
        return out
""",
            run="""\
def make(): return Experts()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
            unsafe=True,
        ),
        Example(
            title="norms, scattered",
            before="""\
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.other = nn.LayerNorm(4), nn.LayerNorm(4, bias=False)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        h = h.masked_scatter(seen.unsqueeze(-1), self.norm(h[seen]))
        h = h.masked_scatter(~seen[..., None], self.other(h[~seen]).to(h.dtype))
        return h
""",
            after="""\
class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.other = nn.LayerNorm(4), nn.LayerNorm(4, bias=False)

    def forward(self, ids):
        h = self.embed(ids)
        seen = ids == 3
        if torch.compiler.is_compiling():
            _rows = self.norm(h.flatten(0, seen.dim() - 1).clone())
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h = torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape)
            _rows = self.other(h.flatten(0, seen.dim() - 1).clone()).to(h.dtype)
            _picked = (~seen).reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h = torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape)
        else:
            h = h.masked_scatter(seen.unsqueeze(-1), self.norm(h[seen]))
            h = h.masked_scatter(~seen[..., None], self.other(h[~seen]).to(h.dtype))
        return h
""",
            run="""\
def make(): return Norms()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
            unsafe=True,
        ),
        Example(
            title="rows with names, which are added",
            before="""\
class Added(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(6, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        old = h[seen]
        gate, value = self.up(self.norm(old)).chunk(2, dim=-1)
        h[seen] = self.down(F.silu(gate) * value)
        h[seen] += old * 2
        return h
""",
            after="""\
class Added(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 12), nn.Linear(6, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        if torch.compiler.is_compiling():
            old = h.flatten(0, seen.dim() - 1).clone()
            gate, value = self.up(self.norm(old)).chunk(2, dim=-1)
            _rows = self.down(F.silu(gate) * value)
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h.copy_(torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape))
            _rows = h.flatten(0, seen.dim() - 1) + (old * 2)
            _picked = seen.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h.copy_(torch.where(_picked, _rows, h.flatten(0, seen.dim() - 1)).reshape(h.shape))
        else:
            old = h[seen]
            gate, value = self.up(self.norm(old)).chunk(2, dim=-1)
            h[seen] = self.down(F.silu(gate) * value)
            h[seen] += old * 2
        return h
""",
            run="""\
def make(): return Added()
calls = [(torch.tensor([[1, 2, 3], [3, 5, 6]]),), (torch.tensor([[1, 2], [4, 5]]),), (torch.tensor([[3, 3]]),)]
train = True
""",
            unsafe=True,
        ),
        Example(
            title="what is read is overwritten, and needed for the gradient",
            before="""\
class Saved(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x) * 1
        low = h > 0
        h[low] = h[low].abs()
        return h
""",
            after="""\
class Saved(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x) * 1
        low = h > 0
        if torch.compiler.is_compiling():
            _rows = h.flatten(0, low.dim() - 1).clone().abs()
            _picked = low.reshape(_rows.shape[0], *[1] * (_rows.dim() - 1))
            h.copy_(torch.where(_picked, _rows, h.flatten(0, low.dim() - 1)).reshape(h.shape))
        else:
            h[low] = h[low].abs()
        return h
""",
            run="""\
def make(): return Saved()
calls = [(torch.linspace(-1, 1, 6).view(2, 3),)]
train = True
""",
            unsafe=True,
        ),
    )
    valid: ClassVar[tuple[NearMiss, ...]] = (
        NearMiss(
            title="an index, not a mask",
            source="""\
class Ordered(nn.Module):
    def forward(self, h):
        order = h.sum(-1).argsort()
        return h[order].mean(), len(h[order])
""",
        ),
        NearMiss(
            title="a number that is a size",
            source="""\
class Sized(nn.Module):
    def forward(self, h):
        y = h * 2
        return torch.zeros(y[y > 0].numel())
""",
            reported=True,
        ),
        NearMiss(
            title="a mask that may be None, which is an index as well",
            source="""\
class Optional(nn.Module):
    def forward(self, h, m: torch.BoolTensor | None = None):
        y = h * 2
        if y[m].shape[0] == 0:
            raise ValueError("nothing is set")
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="a mask of another shape is an error, and stays one",
            source="""\
class Shapes(nn.Module):
    def forward(self, h, m: torch.BoolTensor):
        y = h * 2
        if y[m].shape[0] == 0:
            raise ValueError("nothing is set")
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="a function that takes bools only",
            source="""\
class Strict(nn.Module):
    def forward(self, h):
        y = h * 2
        torch._check(y[y > 0].numel() > 1)
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="a branch that would end the graph in its turn",
            source="""\
class Branch(nn.Module):
    def forward(self, h):
        y = h * 2
        if y[y > 0].numel() == 0:
            return y
        return y * 2
""",
            reported=True,
        ),
        NearMiss(
            title="compared with what may be a float",
            source="""\
class Share(nn.Module):
    def forward(self, h, part):
        y = h * 2
        if y[y > 0].numel() > part:
            raise ValueError("too many")
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="the mean of integers is an error",
            source="""\
class Whole(nn.Module):
    def forward(self, h):
        y = torch.argsort(h)
        return y[y > 0].mean()
""",
            reported=True,
        ),
        NearMiss(
            title="a function that looks at its neighbours",
            source="""\
class Running(nn.Module):
    def forward(self, h):
        y = h * 2
        low = y > 0
        y[low] = y[low].cumsum(0)
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="a function that compares rows with each other",
            source="""\
def centred(x):
    return x - x.mean(0)

class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x) * 1
        inside = h > 0
        h[inside] = centred(h[inside])
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="a module, which may compare rows with each other",
            source="""\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        h = self.lin(x) * 1
        kept = h.sum(-1) > 0
        h[kept] = self.norm(h[kept])
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="a gradient that is infinite where the mask is not set",
            source="""\
class Inverse(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        h = self.lin(x) * 1
        low = h > 0
        h[low] = 1 / h[low]
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="values of another shape",
            source="""\
class Wide(nn.Module):
    def forward(self, x):
        y = x * 1
        other = x.unsqueeze(-1) * 1
        low = y > 0
        y[low] = -other[low].view(-1)
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="a mask that fits by broadcasting",
            source="""\
class Broadcast(nn.Module):
    def forward(self, x):
        order = torch.argsort(x)
        return order.masked_select(order[:1] > 0).sum()
""",
            reported=True,
        ),
        NearMiss(
            title="one of a pair",
            source="""\
class Pair(nn.Module):
    def forward(self, x, pair, level):
        return x * pair[level > 3]
""",
        ),
        NearMiss(
            title="a list",
            source="""\
class Listed(nn.Module):
    def forward(self, x):
        found = [x, x * 2]
        return found[x.dim() > 1]
""",
        ),
        NearMiss(
            title="a module that mixes rows, a line before they are written",
            source="""\
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.norm(h[seen])
        h[seen] = rows
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="rows that are needed packed as well",
            source="""\
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.lin(h[seen])
        h[seen] = rows
        return h, rows
""",
            reported=True,
        ),
        NearMiss(
            title="rows of one mask for another one",
            source="""\
class Swapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        h[seen] = self.lin(h[~seen])
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="the mask changes before the rows are written",
            source="""\
class Changed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.lin(h[seen])
        seen = ids.flip(0) == 3
        h[seen] = rows
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="the mask is written through itself",
            source="""\
class Itself(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.lin(h[seen])
        seen[0] = True
        h[seen] = rows
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="rows that look at each other",
            source="""\
class Sorted(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.lin = nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        rows = self.lin(h[seen])
        h[seen] = rows - rows.mean(0)
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="a module of this file that mixes rows",
            source="""\
class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        x = self.lin(x)
        return x - x.mean(dim=0)

class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)
        self.centre = nn.Sequential(nn.Linear(4, 4))
        self.last = Centre()

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        h[seen] = self.last(self.centre(h[seen]))
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="a method that mixes rows",
            source="""\
class Method(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 4)

    def centred(self, x):
        return x - x.mean(dim=0)

    def forward(self, ids):
        h = self.embed(ids) * 1
        seen = ids == 3
        h[seen] = self.centred(h[seen])
        return h
""",
            reported=True,
        ),
    )


class _Form:
    """One read, and the questions that decide what can be asked instead."""

    def __init__(self, facts: Facts, read: MaskedRead, rows: RowCall | None) -> None:
        self.facts = facts
        self.read = read
        self.rows = rows
        self.assumption = ""

    def fix(self) -> Fix | str:
        """The rewritten expression, or why there is none."""
        read = self.read
        reads = self.facts.masked_reads
        counted, reduced, hoisted = reads.counted(read), reads.reduced(read), reads.written_back(read)
        if self.rows is not None and read.sure:
            return self.by_row(self.rows)
        if counted is None and reduced is None and hoisted is None:
            return "the rows are packed, and their number goes on with them"
        if not read.sure:
            return f"`{ast.unparse(read.mask)}` may be something else than a tensor"
        if read.row is None:
            return f"the mask is not known to have the leading shape of `{ast.unparse(read.base)}`"
        if self.facts.effects.why_not_total(read.base) is not None and not isinstance(read.base, ast.Name):
            return f"`{ast.unparse(read.base)}` is not a plain name"
        if counted is not None:
            return self.count(*counted)
        if reduced is not None:
            return self.reduce(*reduced)
        assert hoisted is not None
        return self.hoist(hoisted)

    # --- counts -----------------------------------------------------------------------------------------------------

    def count(self, whole: ast.expr, elements: bool) -> Fix | str:
        if (reason := self.facts.masked_reads.why_not_number(whole)) is not None:
            return reason
        return Fix((Replace(whole, self.number(self.read.row or 0 if elements else 0)),))

    def number(self, row: int) -> Code:
        """How many elements of a tensor the mask selects when it leaves ``row`` dimensions of it to a row."""
        if not row:
            return Code("{0}.sum()", (self.read.mask,))
        size = "{1}.shape[-1]" if row == 1 else f"{{1}}.shape[-{row}:].numel()"
        return Code(f"{{0}}.sum() * {size}", (self.read.mask, self.read.base))

    # --- reductions -------------------------------------------------------------------------------------------------

    def reduce(self, call: ast.Call, name: str) -> Fix | str:
        dtype = self.facts.presumed.of(self.read.base).dtype
        category = dtype.category if dtype is not None else Category.UNKNOWN
        base, mask = self.read.base, self.read.mask
        inside = Code(f"{{0}}[...{', None' * self.read.row}]" if self.read.row else "{0}", (mask,))
        outside = Code("~{0}", (inside,))
        if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
            outside = Code(inside.template, (mask.operand,))
        if name in ("any", "all"):
            if category is not Category.BOOL:
                return f"`{ast.unparse(self.read.base)}` is not known to be boolean"
            both = Code("{0} & {1}", (base, inside)) if name == "any" else Code("{0} | {1}", (base, outside))
            return Fix((Replace(call, Code(f"{{0}}.{name}()", (both,))),))
        total = Code("{0}.masked_fill({1}, 0).sum()", (base, outside))
        if name == "sum" and category in (Category.INT, Category.BOOL):
            return Fix((Replace(call, total),))
        self.assumption = "the sum may differ in its last bits, for it is taken in another order"
        if name == "sum":
            return Fix((Replace(call, total),), Applicability.UNSAFE)
        if category in (Category.INT, Category.BOOL):
            return "the mean of integers is an error"
        if (reason := self.facts.effects.why_not_total(self.read.mask)) is not None:
            return reason  # it is written twice, and evaluated once
        self.assumption += "; that the elements are floats and that their sum fits their dtype is taken for granted"
        count = self.number(self.read.row or 0)
        divided = Code("{0} / {1}" if not self.read.row else "{0} / ({1})", (total, count))
        return Fix((Replace(call, divided),), Applicability.UNSAFE)

    # --- written back -----------------------------------------------------------------------------------------------

    def hoist(self, target: ast.Subscript) -> Fix | str:
        """``torch.where`` over all of ``f(x)``, where ``f`` takes each element by itself and fails on none."""
        facts, statement = self.facts, self.facts.statement_of(target)
        assert isinstance(statement, ast.Assign)
        into, value = facts.value(target.value), facts.value(statement.value)
        if not isinstance(target.value, ast.Name) or facts.effects.may_overlap(target.value):
            return f"`{ast.unparse(target.value)}` may be an expanded view"
        if (where := facts.spelled("torch.where", statement)) is None:
            return "`torch` is not imported here"
        if into.dtype is None or value.dtype is None or not into.dtype.same(value.dtype):
            return "the value is not known to have the dtype of what it is assigned to"
        if (reason := facts.why_not_replaced(statement, ()) or facts.effects.why_not_total(self.read.mask)) is not None:
            return reason  # the mask is evaluated less often
        if isinstance(reads := facts.by_element.reads(statement.value, target), str):
            return reads
        row = self.read.row or 0
        spread = ".unsqueeze(-1)" if row == 1 else f"[...{', None' * row}]" if row else ""
        parts = (target.value, self.read.mask, filled(statement.value, {r: Code("{0}", (r.value,)) for r in reads}))
        line = Code(f"{{0}}.copy_({where}({{1}}{spread}, {{2}}, {{0}}))", parts)
        return Fix((ReplaceStatements((statement,), (line,)),))

    # --- a function of the rows -------------------------------------------------------------------------------------

    def by_row(self, rows: RowCall) -> Fix | str:
        """The function is given all rows; where the mask is not set, the first one where it is."""
        facts, torch = self.facts, self.facts.spelled("torch", rows.statement)
        if torch is None or (reason := facts.why_not_replaced(rows.statement, ())) is not None:
            return "`torch` is not imported here" if torch is None else str(reason)
        if any(facts.effects.may_overlap(t.value) for t in rows.targets):
            return "what is assigned to may be an expanded view"
        dimensions = [facts.masked_reads.row(t.value, rows.mask) for t in rows.targets]
        if None in dimensions:
            return f"`{rows.mask.id}` is not known to have the leading shape of what is assigned to"
        places, index = facts.fresh_name("_places", rows.mask), facts.fresh_name("_rows", rows.mask)
        arange = f"{torch}.arange({places}.numel(), device={places}.device)"
        lines = [Code(f"{places} = {rows.mask.id}.flatten()")]
        lines.append(Code(f"{index} = {torch}.where({places}, {arange}, {places}.int().argmax())"))
        picked = f"{{0}}.flatten(0, {rows.mask.id}.ndim - 1)[{index}]"
        call = filled(rows.call, {r: Code(picked, (r.value,)) for r in rows.reads})
        names = [facts.fresh_name("_values", rows.mask) for _ in rows.targets]
        several = isinstance(rows.statement.targets[0], ast.Tuple)
        lines.append(Code(", ".join(names) + ("," if several and len(names) == 1 else "") + " = {0}", (call,)))
        for target, name, row in zip(rows.targets, names, dimensions, strict=True):
            mask = f"{rows.mask.id}[...{', None' * row}]" if row else rows.mask.id
            chosen = f"{{0}}.copy_({torch}.where({mask}, {name}.reshape({{0}}.shape), {{0}}))"
            lines.append(Code(chosen, (target.value,)))
        self.assumption = (
            f"`{ast.unparse(rows.call.func)}` takes each row by itself (other rounding), and a place is set"
        )
        return Fix((ReplaceStatements((rows.statement,), tuple(lines)),), Applicability.UNSAFE)

    # --- rows that modules compute ----------------------------------------------------------------------------------

    def over_all(self, region: RowRegion) -> Fix | str:
        """Compiled code computes all rows, and picks by the mask; eager code stays."""
        facts, first = self.facts, region.statements[0]
        if facts.spelled("torch", first) != "torch":
            return "`torch` is not imported here"
        names = (facts.fresh_name("_rows", first), facts.fresh_name("_picked", first))
        header, self.assumption = facts.row_regions.enclosing(region, names), region.granted
        return Fix((Enclose(region.statements, Code(header)),), Applicability.UNSAFE)
