"""Statements that compute something of the rows that a mask selects and write it back through that mask.

``h = h.masked_scatter(m.unsqueeze(-1), norm(h[m]))``, ``out[~m] = mlp(x[~m])``, ``h[m] += expert(rows)``: over all rows
the same, with a choice by the mask where something is written, and every shape is known.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import integer, short

_CHANGES = (ast.Add, ast.Sub, ast.Mult, ast.Div)


class Refused(Exception):  # noqa: N818 - it is no error, it is the answer
    """There is no such region; the text says why."""


@dataclass(frozen=True)
class Step:
    """One statement of a region: ``names`` get ``value``, which is made of rows; or rows of ``into`` get it.

    ``mask``: which rows these are. ``op``: what brings old rows and ``value`` together; None: it takes their place.
    ``anew``: ``into`` is another tensor afterwards.
    """

    value: ast.expr
    mask: ast.expr
    names: tuple[str, ...] = ()
    into: ast.Name | None = None
    op: ast.operator | None = None
    anew: bool = False


@dataclass(frozen=True)
class RowRegion:
    """Neighbours in one block, and what they do, step by step.

    ``reads``: all reads through a mask, in order. ``masks``: how the masks are spelled.
    """

    statements: tuple[ast.stmt, ...]
    steps: tuple[Step, ...]
    reads: tuple[ast.Subscript, ...]
    masks: frozenset[str]


class RowRegions(Analysis):
    """Such neighbours in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.masked_reads, self.changed = facts.ask(MaskedReads), facts.ask(Unchanged).why_changed

    def of(self, statement: ast.stmt) -> RowRegion | str | None:
        """The region that ``statement`` starts; why there is none, or None.

        None for a statement that writes nothing through a mask and computes nothing of rows.
        """
        if not isinstance(statement, (ast.Assign, ast.AugAssign)):
            return None
        function, block = self.syntax.function_of(statement), self.syntax.block_of(statement)
        if function is None or not self.starts(statement):
            return None
        growing = _Region(self)
        taken: list[ast.stmt] = []
        whole: RowRegion | str = "the rows are packed, and their number goes on with them"
        for s in block[block.index(statement) :]:
            if not isinstance(s, (ast.Assign, ast.AugAssign)) or not self.syntax.alone(s):
                break
            try:
                growing.add(s)
            except Refused as refusal:
                whole = str(refusal) if isinstance(whole, str) else whole
                break
            taken.append(s)
            if growing.steps[-1].into is not None and not self._leaves({*growing.packed}, taken, function):
                whole = RowRegion(tuple(taken), tuple(growing.steps), tuple(growing.reads), frozenset(growing.masks))
        return whole

    def holding(self, statement: ast.stmt) -> RowRegion | None:
        """The region that ``statement`` is a part of."""
        block = self.syntax.block_of(statement)
        found = (self.of(s) for s in block[: block.index(statement) + 1])
        return next((r for r in found if isinstance(r, RowRegion) and statement in r.statements), None)

    def starts(self, statement: ast.stmt) -> bool:
        """Whether ``statement`` reads through a mask in an expression."""
        value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
        return value is not None and any(self.read(n) for n in ast.walk(value))

    def read(self, node: ast.AST) -> bool:
        """Whether ``node`` is ``x[mask]`` or ``x[mask, i]``, and fails for anything but a mask."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            return False
        read, (mask, *others) = self.masked_reads.of(node), parts(node.slice)
        return read is not None and read.sure and read.mask is mask and all(map(self._is_same, others))

    def _is_same(self, e: ast.expr) -> bool:
        """Whether ``e`` picks the same of each row: a whole number, ``None`` or a slice of such."""
        if isinstance(e, ast.Slice):
            return all(part is None or self._is_same(part) for part in (e.lower, e.upper, e.step))
        return isinstance(e, ast.Constant) or self.inference.of(e).python in ("int", "number")

    def spelled(self, mask: ast.expr) -> str:
        """How the mask is spelled whose rows ``mask`` picks, in their order: ``m`` for ``flat = m.view(-1)``."""
        known = self.inference.definitions(mask) if isinstance(mask, ast.Name) else ()
        one = next(iter(known)) if len(known) == 1 else None
        match one.value if one is not None and one.how == "assign" and not one.path else None:
            case ast.Call(func=ast.Attribute(value=ast.Name() as of, attr="view" | "reshape" | "flatten"), args=args):
                if all(integer(size) == -1 for size in args) and not self.changed(of, of, mask):
                    return of.id
        return ast.unparse(mask)

    def _leaves(self, packed: set[str], taken: Sequence[ast.stmt], function: FunctionNode) -> bool:
        """Whether packed rows are read behind ``taken``, or may be."""
        return bool(packed & self.flow_of(function).outliving({n for s in taken for n in ast.walk(s)}))


class _Region:
    """One region as it grows."""

    def __init__(self, regions: RowRegions) -> None:
        self.regions = regions
        self.steps: list[Step] = []
        self.reads: dict[ast.Subscript, None] = {}
        self.masks: dict[str, ast.expr] = {}
        self.packed: dict[str, str] = {}

    def add(self, s: ast.Assign | ast.AugAssign) -> None:
        """One statement more. Raises Refused when it cannot be told what it is over all rows."""
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom, ast.Lambda)) for n in ast.walk(s)):
            raise Refused("the statement binds names inside of expressions")
        scattered = _scattered(s) if isinstance(s, ast.Assign) else None
        match s:
            case ast.Assign(targets=[ast.Name(id=name)]) if scattered is not None:
                into, mask, value = scattered
                key = _key(mask)
                if into.id != name or key is None:
                    raise Refused(f"`{ast.unparse(mask)}` is not known to spread a mask over rows")
                self._write(into, key, value, anew=True)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name() as into, slice=at)], value=value):
                self._write(into, self.regions.spelled(at), value, mask=at)
            case ast.AugAssign(target=ast.Subscript(value=ast.Name() as into, slice=at), op=op, value=value):
                if not isinstance(op, _CHANGES):
                    raise Refused(f"`{short(s)}` changes rows in a way that is not known")
                self._write(into, self.regions.spelled(at), value, op, mask=at)
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target], value=value):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                if not all(isinstance(n, ast.Name) for n in names):
                    raise Refused(f"`{short(s)}` is more than a computation on rows")
                self._bind(tuple(n.id for n in names if isinstance(n, ast.Name)), value)
            case _:
                raise Refused(f"`{short(s)}` is more than a computation on rows")

    def _of(self, e: ast.expr) -> str:
        """How the one mask is spelled whose rows ``e`` is made of."""
        reads = [n for n in ast.walk(e) if isinstance(n, ast.Subscript) and self.regions.read(n)]
        inside = {n for r in reads for n in ast.walk(r)}
        keys = {self.regions.spelled(parts(r.slice)[0]) for r in reads}
        for n in ast.walk(e):
            if isinstance(n, ast.Name) and n.id in self.packed:
                keys.add(self.packed[n.id])
            elif isinstance(n, ast.Name) and n not in inside:
                value = self.regions.inference.of(n)
                if (
                    value.is_tensor
                    and not value.is_scalar_tensor
                    and not isinstance(self.regions.syntax.parents[n], ast.Attribute)
                ):
                    raise Refused(f"`{n.id}` may have a row for each that the mask selects")
        if len(keys) != 1:
            raise Refused(f"`{short(e)}` is not made of the rows of one mask")
        key = keys.pop()
        for r in reads:
            if not _plain(mask := parts(r.slice)[0]) or not isinstance(
                r.value, ast.Name | ast.Attribute | ast.Subscript
            ):
                raise Refused(f"`{short(r)}` is not a plain name with a plain mask")
            self.masks.setdefault(key, mask)
        self.reads |= dict.fromkeys(reads)
        return key

    def _bind(self, names: tuple[str, ...], value: ast.expr) -> None:
        key = self._of(value)
        self._changes(names)
        self.packed |= dict.fromkeys(names, key)
        self.steps.append(Step(value, self.masks[key], names))

    def _changes(self, names: tuple[str, ...]) -> None:
        used = {n.id for m in self.masks.values() for n in ast.walk(m) if isinstance(n, ast.Name)} | {*self.masks}
        changed = used & {*names}
        if changed:
            raise Refused(f"the mask `{changed.pop()}` changes")

    def _write(
        self,
        into: ast.Name,
        key: str,
        value: ast.expr,
        op: ast.operator | None = None,
        anew: bool = False,
        mask: ast.expr | None = None,
    ) -> None:
        if self._of(value) != key:
            raise Refused(f"what one mask selects goes where `{key}` says")
        self._changes((into.id,))
        if into.id in self.packed or not self.regions.inference.of(into).is_tensor:
            raise Refused(f"`{into.id}` is not known to be a tensor with all rows")
        self.steps.append(Step(value, mask or self.masks[key], (), into, op, anew))


def parts(at: ast.expr) -> list[ast.expr]:
    """Return what an index is made of, the mask first."""
    return at.elts if isinstance(at, ast.Tuple) and at.elts else [at]


def _scattered(s: ast.Assign) -> tuple[ast.Name, ast.expr, ast.expr] | None:
    """The tensor, the mask and the rows of ``h = h.masked_scatter(mask, rows)``."""
    match s.value:
        case ast.Call(func=ast.Attribute(value=ast.Name() as into, attr="masked_scatter"), args=args, keywords=named):
            given = dict(zip(("mask", "source"), args, strict=False)) | {k.arg or "": k.value for k in named}
            if set(given) == {"mask", "source"} and len(args) + len(named) == 2:
                return into, given["mask"], given["source"]
    return None


def _key(e: ast.expr) -> str | None:
    """How the mask of rows is spelled that ``e`` spreads over their elements."""
    match e:
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            inner = _key(operand)
            return None if inner is None else f"~{inner}" if not inner.startswith("~") else None
        case ast.Call(func=ast.Attribute(value=value, attr="unsqueeze"), args=[dim], keywords=[]):
            return ast.unparse(value) if ast.unparse(dim) == "-1" and _plain(value) else None
        case ast.Subscript(value=value, slice=ast.Tuple(elts=[ast.Constant(value=first), ast.Constant(value=None)])):
            return ast.unparse(value) if first is ... and _plain(value) else None
        case ast.Call(func=ast.Attribute(value=value, attr="expand_as" | "to" | "expand")):
            return _key(value)
    return None


def _plain(mask: ast.expr) -> bool:
    """A name, or what it is not."""
    match mask:
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return isinstance(operand, (ast.Name, ast.Attribute))
    return isinstance(mask, (ast.Name, ast.Attribute))
