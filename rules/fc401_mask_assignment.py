"""FC401: assignment through a boolean mask."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.checks.caught import Caught
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.totality import Effects
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.tree import dotted, same_expression
from patcher.facts.values.types import Category, Kind, Value, arithmetic
from patcher.rule import Code, Example, Finding, Fix, NearMiss, ReplaceStatements, Rule, block

ROWS = """\
def data(batch, places, rows):
    g = torch.Generator().manual_seed(batch)
    ids = torch.randint(8, 20, (batch, 6), generator=g)
    ids[:, 1 : 1 + places] = 7
    return ids, torch.randn(rows, 4, generator=g)
def make(): return Merge()
sizes = (1, 2, 2), (2, 2, 4), (3, 2, 6), (2, 0, 0), (2, 3, 1), (1, 1, 1), (2, 2, 3), (2, 2, 5)
calls = [data(*s) for s in sizes]
train = True
"""


class MaskAssignment(Rule):
    """An assignment ``x[mask] = value`` with a boolean mask and a tensor value.

    What it does:
        Writes the choice out: ``torch.where`` over the whole tensor, copied into ``x`` in place. Rows that are handed
        out in order are looked up by the running count of the mask (``cumsum``).

    Why it breaks compilation:
        How many places a mask selects is known only at run time. Reading ``y[mask]`` breaks the graph in the forward
        pass; ``x[mask] = rows`` does in training, where the backward pass traces ``nonzero``; and as an index_put with
        a boolean index it keeps CUDA graphs away.

    Fix safety:
        Safe when it is proven that the mask is boolean and has the shape of ``x`` without the dimensions that a row
        has, that the value's rank fits one of the forms below, and that its dtype is that of ``x``. ``x`` is still
        changed in place, so every alias sees the change. A wrong number of rows is still a RuntimeError (on CUDA, a
        device-side assertion); one row is still given to every place, and no row to none. Gradients of ``x`` and of
        the rows are the same numbers; the gradient of a single row that many places share is summed in another order,
        so its last bit may differ.

    References:
        The image-token fix of the nanoVLM report; PyTorch, "Dynamic shape operator" (graph break GB0036).
    """

    code = "FC401"
    name = "mask-assignment"
    triggers = (b"] =", b"]=", b"] +=", b"] -=", b"] *=", b"] /=", b"]+=", b"]*=")
    listens_to = (ast.Assign, ast.AugAssign)
    costs = ("graph break", "CUDA graphs")

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it assigns tensor values through a boolean mask in compiled code."""
        assert isinstance(node, (ast.Assign, ast.AugAssign))
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) != 1 or not isinstance(targets[0], ast.Subscript):
            return
        target = targets[0]
        mask = facts.value(target.slice)
        boolean = mask.is_boolean
        doubtful = mask.data and mask.kind is Kind.UNKNOWN  # ``x == y`` with nobody knows what
        if not boolean and not doubtful:
            return
        plain = isinstance(node, ast.Assign)
        value = facts.value(node.value)
        if plain and (not value.is_tensor or value.is_scalar_tensor) and value.kind.value != "unknown":
            return
        form = _Form(facts, node, target, mask)
        outcome = form.fix() if boolean else f"whether `{ast.unparse(target.slice)}` is a tensor is not known"
        message = "a boolean-mask assignment has a data-dependent size: graph break"
        if isinstance(outcome, Fix):
            yield Finding(node, message, outcome)
        else:
            yield Finding(node, message, assumption=outcome)

    invalid = (
        Example(
            title="a row for each place, in order",
            before="""\
class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)

    def forward(self, ids, features):
        h = self.embed(ids).clone()
        rows = self.proj(features)
        slots = ids == 7
        h[slots] = rows.view(-1, rows.size(-1)).to(h.dtype)  # in order
        return h
""",
            after="""\
class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)

    def forward(self, ids, features):
        h = self.embed(ids).clone()
        rows = self.proj(features)
        slots = ids == 7
        _rows = rows.view(-1, rows.size(-1)).to(h.dtype)  # in order
        if _rows.shape[0] != 1:
            torch._assert_async(slots.sum() == _rows.shape[0], "rows must fit the mask")
        if _rows.shape[0] == 0:
            _rows = _rows.sum(0, keepdim=True)
        _index = (slots.flatten().cumsum(0) - 1).clamp(0, _rows.shape[0] - 1).view(slots.shape)
        h.copy_(torch.where(slots.unsqueeze(-1), _rows[_index], h))
        return h
""",
            run=ROWS,
        ),
        Example(
            title="the mask is worked out in the subscript, in a private method",
            before="""\
class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)
        self.picture = 7

    def _fill(self, ids, into, rows):
        filled = into.clone()
        filled[
            ids == self.picture  # pictures
        ] = rows.reshape(
            -1, rows.shape[-1]
        ).type_as(filled)
        return filled

    def forward(self, ids, features):
        return self._fill(ids, self.embed(ids), self.proj(features))
""",
            after="""\
class Merge(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)
        self.picture = 7

    def _fill(self, ids, into, rows):
        filled = into.clone()
        _rows = rows.reshape(
            -1, rows.shape[-1]
        ).type_as(filled)  # pictures
        _mask = ids == self.picture
        if _rows.shape[0] != 1:
            torch._assert_async(_mask.sum() == _rows.shape[0], "rows must fit the mask")
        if _rows.shape[0] == 0:
            _rows = _rows.sum(0, keepdim=True)
        _index = (_mask.flatten().cumsum(0) - 1).clamp(0, _rows.shape[0] - 1).view(_mask.shape)
        filled.copy_(torch.where(_mask.unsqueeze(-1), _rows[_index], filled))
        return filled

    def forward(self, ids, features):
        return self._fill(ids, self.embed(ids), self.proj(features))
""",
            run=ROWS,
        ),
        Example(
            title="one row for all places",
            before="""\
class Blank(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blank = nn.Embedding(20, 4), nn.Parameter(torch.ones(4))

    def forward(self, ids):
        h = self.embed(ids).clone()
        h[ids == 7] = self.blank
        return h
""",
            after="""\
class Blank(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blank = nn.Embedding(20, 4), nn.Parameter(torch.ones(4))

    def forward(self, ids):
        h = self.embed(ids).clone()
        h.copy_(torch.where((ids == 7).unsqueeze(-1), self.blank, h))
        return h
""",
            run="""\
def make(): return Blank()
calls = [(torch.tensor([[7, 1, 7]]),), (torch.tensor([[2, 1, 3], [7, 7, 7]]),)]
train = True
""",
        ),
        Example(
            title="the same mask on both sides",
            before="""\
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids)
        other = self.proj(h)
        h = h.clone()
        seen = ids > 7
        h[seen] = other[seen].to(h.dtype)
        return h
""",
            after="""\
class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.proj = nn.Embedding(20, 4), nn.Linear(4, 4)

    def forward(self, ids):
        h = self.embed(ids)
        other = self.proj(h)
        h = h.clone()
        seen = ids > 7
        h.copy_(torch.where(seen.unsqueeze(-1), other.to(h.dtype), h))
        return h
""",
            run="""\
def make(): return Mixed()
calls = [(torch.tensor([[7, 8, 7]]),), (torch.tensor([[2, 1, 3], [9, 10, 11]]),)]
train = True
""",
        ),
        Example(
            title="the same mask on both sides, element by element",
            before="""\
class Picked(nn.Module):
    def forward(self, x):
        y = x * 2
        low = y < 0
        z = y.abs()
        y[low] = z[low]
        return y
""",
            after="""\
class Picked(nn.Module):
    def forward(self, x):
        y = x * 2
        low = y < 0
        z = y.abs()
        y.copy_(torch.where(low, z, y))
        return y
""",
            run="""\
def make(): return Picked()
calls = [(torch.linspace(-1, 1, 6).view(2, 3),), (torch.ones(1, 3),)]
""",
        ),
        Example(
            title="rows of two dimensions",
            before="""\
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blank = nn.Embedding(20, 4), nn.Parameter(torch.ones(4, 1))

    def forward(self, ids):
        h = self.embed(ids).unsqueeze(-1).clone()
        other = h * 2
        h[ids == 7] = self.blank
        h[ids > 7] = other[ids > 7]
        return h
""",
            after="""\
class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blank = nn.Embedding(20, 4), nn.Parameter(torch.ones(4, 1))

    def forward(self, ids):
        h = self.embed(ids).unsqueeze(-1).clone()
        other = h * 2
        h.copy_(torch.where((ids == 7)[..., None, None], self.blank, h))
        h.copy_(torch.where((ids > 7)[..., None, None], other, h))
        return h
""",
            run="""\
def make(): return Heads()
calls = [(torch.tensor([[7, 1, 7]]),), (torch.tensor([[2, 1, 3], [9, 7, 11]]),)]
train = True
""",
        ),
        Example(
            title="augmented assignment",
            before="""\
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.shift = nn.Embedding(20, 4), nn.Parameter(torch.ones(4))

    def forward(self, ids):
        h = self.embed(ids).clone()
        h[ids == 7] += self.shift
        return h
""",
            after="""\
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.shift = nn.Embedding(20, 4), nn.Parameter(torch.ones(4))

    def forward(self, ids):
        h = self.embed(ids).clone()
        h.copy_(torch.where((ids == 7).unsqueeze(-1), h + self.shift, h))
        return h
""",
            run="""\
def make(): return Shift()
calls = [(torch.tensor([[7, 1, 7]]),), (torch.tensor([[2, 1, 3], [7, 7, 7]]),)]
train = True
""",
        ),
        Example(
            title="a buffer of the module",
            before="""\
class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    @torch.no_grad()
    def forward(self, x):
        y = self.seen + 1
        low = self.seen < 2
        self.seen[low] = y[low]
        return x + self.seen
""",
            after="""\
class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    @torch.no_grad()
    def forward(self, x):
        y = self.seen + 1
        low = self.seen < 2
        self.seen.copy_(torch.where(low, y, self.seen))
        return x + self.seen
""",
            run="""\
def make(): return Kept()
calls = [(torch.ones(3),)] * 4
""",
        ),
        Example(
            title="a value of unknown rank is reported",
            before="""\
class Open(nn.Module):
    def forward(self, h, rows):
        h = h.clone()
        h[h.sum(-1) > 0] = rows
        return h
""",
            after=None,
            run="""\
def make(): return Open()
calls = [(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.ones(1, 2)), (torch.ones(2, 2), torch.ones(3, 2))]
""",
        ),
    )
    valid = (
        NearMiss(
            title="random numbers of the value come before those of the mask",
            source="""\
class Augmented(nn.Module):
    def __init__(self):
        super().__init__()
        self.blank = nn.Parameter(torch.zeros(4))

    def forward(self, ids: torch.Tensor):
        h = torch.zeros(*ids.shape, 4)
        h[torch.rand_like(ids.float()) < 0.5] = torch.randn_like(self.blank)
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="the value changes what the mask reads",
            source="""\
class Rectified(nn.Module):
    def forward(self, x):
        h, y = x * 1, x * 2
        y[h < 0] = F.relu(h, inplace=True)[h < 0]
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="what is added is read after the value has changed it",
            source="""\
class Shifted(nn.Module):
    def forward(self, x):
        h = x * 1.0
        h[h > 0] += h.add_(1).mean()
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="a Python scalar does not break the graph",
            source="""\
class Zeroed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids).clone()
        h[ids == 7] = 0.0
        return h
""",
        ),
        NearMiss(
            title="an index, not a mask",
            source="""\
class Ordered(nn.Module):
    def forward(self, h, rows):
        h = h.clone()
        order = h.sum(-1).argsort()
        h[order] = rows
        return h
""",
        ),
        NearMiss(
            title="a mask that lines up in another way",
            source="""\
class Columns(nn.Module):
    def forward(self, h, m):
        h = h.clone() * 1.0
        row = torch.ones(4, dtype=h.dtype)
        h[m.bool()] = row
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="another dtype is an error, and stays one",
            source="""\
class Typed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids).clone()
        h[ids == 7] = torch.ones(4, dtype=torch.float64)
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="two masks",
            source="""\
class Crossed(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 4)

    def forward(self, ids):
        h = self.embed(ids)
        other = h * 2
        h = h.clone()
        h[ids == 7] = other[ids == 8]
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="an operator that may raise where the mask is not set",
            source="""\
class Floored(nn.Module):
    def forward(self, x):
        n = torch.argsort(x)
        n[x > 0] //= 2
        return n
""",
            reported=True,
        ),
        NearMiss(
            title="an expanded view, which cannot be copied into",
            source="""\
class Expanded(nn.Module):
    def forward(self, x):
        y = (x * 2).unsqueeze(-1).expand_as(x.unsqueeze(-1))
        z = y * 2
        low = y > 0
        y[low] = z[low]
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="a mask that is drawn anew each time it is written",
            source="""\
class Drawn(nn.Module):
    def forward(self, x):
        y = x * 1
        z = y * 2
        y[torch.rand_like(y) > 0.5] = z[torch.rand_like(y) > 0.5]
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="an argument may be an expanded view",
            source="""\
class Passed(nn.Module):
    def forward(self, h):
        m = h > 0
        z = h.abs()
        h[m] = z[m]
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="infinity at places that the mask leaves out",
            source="""\
class Endless(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
        self.top = float("inf")

    def forward(self, x):
        h = self.lin(x) * 1
        h[h > 0] *= self.top
        return h
""",
            reported=True,
        ),
        NearMiss(
            title="one line, two statements",
            source="""\
class Short(nn.Module):
    def forward(self, x):
        y = x * 1; m = y > 0; z = y * 2
        if x.dim() == 2: y[m] = z[m]
        return y
""",
            reported=True,
        ),
        NearMiss(
            title="rows that are read through the mask themselves, which break the graph as well",
            source="""\
class Turned(nn.Module):
    def forward(self, x):
        share = torch.rand(7, 2)
        wide = share.sum(dim=-1) > 1
        share[wide] = 1 - share[wide]
        return x * share.sum()
""",
            reported=True,
        ),
        NearMiss(
            title="a list",
            source="""\
class Listed(nn.Module):
    def forward(self, x):
        found = [x, x * 2]
        found[x.dim() > 1] = x * 3
        return found[0]
""",
        ),
    )


class _Form:
    """One masked assignment, and the questions that decide which form it has."""

    def __init__(self, facts: Facts, node: ast.Assign | ast.AugAssign, target: ast.Subscript, mask: Value) -> None:
        self.facts = facts
        self.node = node
        self.mask = target.slice
        self.mask_value = mask
        self.into = target.value
        self.into_value = facts.value(target.value)
        self.where = facts.writing.spelling("torch.where", node)
        self.torch = facts.writing.spelling("torch", node)

    def fix(self) -> Fix | str:
        """The rewritten statements, or what is not proven."""
        if dotted(self.into) is None:
            return f"`{ast.unparse(self.into)}` is not a plain name or attribute"
        if not self.into_value.is_tensor or self.into_value.dtype is None:
            return f"what `{ast.unparse(self.into)}` holds is not known"
        if self.facts.ask(Effects).may_overlap(self.into):
            return f"`{ast.unparse(self.into)}` may be an expanded view"
        if (reason := self.facts.writing.why_not_replaced(self.node)) is not None:
            return reason
        if reason := self.facts.ask(Unchanged).why_not_swapped(self.node.value, self.mask, self.into):
            return reason
        if (row := self.row_dimensions()) is None:
            return "the mask is not known to have the leading shape of what it indexes"
        if changed := self.facts.ask(GradientMode).why_saved_changes(self.mask, self.node):
            return f"a backward pass needs `{ast.unparse(self.mask)}` as it was, and {changed}"
        lines = self.augmented(row) if isinstance(self.node, ast.AugAssign) else self.assigned(row)
        return lines if isinstance(lines, str) else Fix((ReplaceStatements((self.node,), tuple(lines)),))

    def row_dimensions(self) -> int | None:
        """How many dimensions of the tensor the mask leaves to a row, or None when the shapes are unknown."""
        shape = self.into_value.shape
        return shape.row_dimensions(self.mask_value.shape) if shape is not None else None

    # --- the forms --------------------------------------------------------------------------------------------------

    def assigned(self, row: int) -> list[Code] | str:
        same = self.same_mask(row)
        if same is not None:
            return same
        value = self.facts.value(self.node.value)
        if not value.is_tensor:
            return f"what `{ast.unparse(self.node.value)}` holds is not known"
        if not self.same_dtype(value):
            return "the value is not known to have the dtype of what it is assigned to"
        if self.facts.ask(Unchanged).may_share(self.into, self.node.value):
            return f"`{ast.unparse(self.node.value)}` may be a part of `{ast.unparse(self.into)}`, which is an error"
        if value.rank is None or value.rank.base is not None:
            return "the rank of the value is not known: one row for all places, or a row for each"
        if value.rank.offset <= row:
            return [self.chosen(Code("{0}", (self.mask,)), Code("{0}", (self.node.value,)), row)]
        if value.rank.offset == row + 1:
            return self.rows(row)
        return "the value has more dimensions than rows have"

    def same_mask(self, row: int) -> list[Code] | str | None:
        """``x[m] = y[m]`` (the right side may be converted with ``.to`` or ``.type_as``)."""
        call, source = None, self.node.value
        match source:
            case ast.Call(func=ast.Attribute(attr="to" | "type_as", value=ast.Subscript() as inner)):
                call, source = source, inner
        if not isinstance(source, ast.Subscript) or not same_expression(source.slice, self.mask):
            return None
        if (reason := self.facts.ask(Effects).why_not_total(self.mask)) is not None:
            return reason  # it is written twice, and evaluated once
        other = self.facts.value(source.value)
        if not other.is_tensor or other.shape is None:
            return f"what `{ast.unparse(source.value)}` holds is not known"
        if self.into_value.shape is None or other.shape.row_dimensions(self.mask_value.shape) != row:
            return f"`{ast.unparse(source.value)}` is not known to have the shape of `{ast.unparse(self.into)}`"
        if not self.same_dtype(self.facts.value(self.node.value)):
            return "the value is not known to have the dtype of what it is assigned to"
        picked = Code("{0}", (source.value,))
        if call is not None and isinstance(call.func, ast.Attribute):
            arguments = ", ".join(f"{{{i + 1}}}" for i in range(len(call.args)))
            keywords = [f"{k.arg}={{{i + 1 + len(call.args)}}}" for i, k in enumerate(call.keywords)]
            listed = ", ".join(filter(None, [arguments, *keywords]))
            values = (*call.args, *(k.value for k in call.keywords))
            picked = Code(f"{{0}}.{call.func.attr}({listed})", (source.value, *values))
        return [self.chosen(Code("{0}", (self.mask,)), picked, row)]

    def augmented(self, row: int) -> list[Code] | str:
        node = self.node
        assert isinstance(node, ast.AugAssign)
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}.get(type(node.op))
        if sign is None:
            return "this operator may raise at places that the mask leaves out"
        value = self.facts.value(node.value)
        floating = self.into_value.dtype is not None and self.into_value.dtype.category is Category.FLOAT
        if value.is_tensor:
            if value.rank is None or value.rank.base is not None or value.rank.offset > row:
                return "the value is not known to be one row or number for all places"
            if not (self.same_dtype(value) or (value.is_scalar_tensor and row >= 1 and floating)):
                return "the value is not known to have the dtype of what it changes"
            if sign in "*/" and not self.facts.ask(GradientMode).off(node):
                return "places that the mask leaves out could reach the gradient of the value"
        elif not self.facts.ask(Effects).is_number(node.value):
            return f"what `{ast.unparse(node.value)}` holds is not known"
        elif not (floating or self.same_dtype(arithmetic(self.into_value, value, division=sign == "/"))):
            return "an integer tensor may not take this value"
        if (
            sign in "*/"
            and not self.facts.ask(GradientMode).off(node)
            and self.facts.ask(Effects).why_not_smooth(node.value) is not None
        ):
            return "infinity times the zero gradient of a place that the mask leaves out is no zero"
        if sign == "/" and not (isinstance(node.value, ast.Constant) and node.value.value):
            return "a division by zero could reach the gradient at places that the mask leaves out"
        changed = Code(f"{{0}} {sign} {{1}}", (self.into, node.value))
        return [self.chosen(Code("{0}", (self.mask,)), changed, row)]

    def rows(self, row: int) -> list[Code] | str:
        """Row ``k`` goes to the ``k``-th place that is set; a single row to all of them."""
        reads = (n for n in ast.walk(self.node.value) if isinstance(n, ast.Subscript))
        if any(same_expression(n.slice, self.mask) for n in reads):
            return "the value is read through the mask as well, where the graph breaks all the same"
        if caught := self.facts.ask(Caught).why(self.node, ("RuntimeError",), here=True):
            return caught  # compiled code checks when its handlers have been passed; who calls it gets the error
        lines = []
        rows, index = (
            self.facts.writing.fresh_local("_rows", self.node),
            self.facts.writing.fresh_local("_index", self.node),
        )
        lines.append(Code(f"{rows} = {{0}}", (self.node.value,)))
        mask = Code("{0}", (self.mask,))
        if not isinstance(self.mask, ast.Name):
            named = self.facts.writing.fresh_local("_mask", self.node)
            lines.append(Code(f"{named} = {{0}}", (self.mask,)))
            mask = Code(named)
        message = '"rows must fit the mask"'
        checked = Code(f"{self.torch}._assert_async({{0}}.sum() == {rows}.shape[0], {message})", (mask,))
        lines.append(block(Code(f"if {rows}.shape[0] != 1:"), [checked]))
        count = f"({{0}}.flatten().cumsum(0) - 1).clamp(0, {rows}.shape[0] - 1).view({{0}}.shape)"
        spare = Code(f"{rows} = {rows}.sum(0, keepdim=True)")
        lines.append(block(Code(f"if {rows}.shape[0] == 0:"), [spare]))
        return [*lines, Code(f"{index} = {count}", (mask,)), self.chosen(mask, Code(f"{rows}[{index}]"), row)]

    # --- proofs and pieces ------------------------------------------------------------------------------------------

    def same_dtype(self, value: Value) -> bool:
        mine = self.into_value.dtype
        return mine is not None and value.dtype is not None and value.dtype.exactly(mine)

    def chosen(self, mask: Code, value: Code, row: int) -> Code:
        widened = ".unsqueeze(-1)" if row == 1 else f"[...{', None' * row}]"
        condition = Code(f"{{0}}{widened}", (mask,)) if row else mask
        return Code(f"{{0}}.copy_({self.where}({{1}}, {{2}}, {{0}}))", (self.into, condition, value))
