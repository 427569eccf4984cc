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
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.groups.row_values import ROWS, Held, Refused, RowValues, Sort
from patcher.facts.masks.by_row import RowCalls
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.masks.mixing import mixes
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import given
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind

_STEEP = api.STEEP_FLOAT | frozenset("norm std var pow div prod true_divide".split())
_CHANGES = (ast.Add, ast.Sub, ast.Mult, ast.Div)

#: Functions and methods in which a tensor meets the rows element by element.
_BROADCASTING = frozenset(
    "add sub mul div pow maximum minimum where lerp addcmul remainder fmod atan2 logical_and logical_or".split()
)


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

    ``reads``: all reads through a mask, in order. ``masks``: how the masks are spelled. ``taken_for``: the callables
    that are taken to compute each row by itself.
    """

    statements: tuple[ast.stmt, ...]
    steps: tuple[Step, ...]
    reads: tuple[ast.Subscript, ...]
    masks: frozenset[str]
    taken_for: tuple[str, ...]


class RowRegions(Analysis):
    """Such neighbours in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.masked_reads = facts.ask(MaskedReads)
        self.by_row = facts.ask(RowCalls).rowwise

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
            if growing.steps[-1].into is not None and not self._leaves(growing.packed, taken, function):
                assumed = tuple(dict.fromkeys(t for v in growing.values.values() for t in v.taken_for))
                steps, reads = tuple(growing.steps), tuple(growing.reads)
                whole = RowRegion(tuple(taken), steps, reads, frozenset(growing.values), assumed)
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
        """Whether ``node`` is ``x[mask]``, and fails for anything but a mask."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Load):
            return False
        read = self.masked_reads.of(node)
        return read is not None and read.first and read.mask is node.slice and read.sure

    def _leaves(self, packed: set[str], taken: Sequence[ast.stmt], function: FunctionNode) -> bool:
        """Whether packed rows are read behind ``taken``, or may be."""
        return bool(packed & self.flow_of(function).outliving({n for s in taken for n in ast.walk(s)}))


class _Rows(RowValues):
    """What is computed of the rows that ``mask`` selects."""

    def __init__(self, regions: RowRegions, mask: ast.expr, reads: dict[ast.Subscript, None]) -> None:
        super().__init__(regions.facts)
        self.regions, self.mask, self.key, self.reads = regions, mask, ast.unparse(mask), reads

    def _subscript(self, e: ast.Subscript) -> Held:
        if not self.regions.read(e):
            return super()._subscript(e)
        if ast.unparse(e.slice) != self.key:
            raise Refused(f"`{ast.unparse(e)}` has other rows than `{self.key}` selects")
        self.fixed(e.value)
        if not isinstance(e.value, (ast.Name, ast.Attribute, ast.Subscript)):
            raise Refused(f"`{ast.unparse(e.value)}` is not a plain name")
        self.reads[e] = None
        return ROWS

    def binary(self, e: ast.AST, a: Held, op: ast.operator, b: Held) -> Held:
        held = super().binary(e, a, op, b)
        if isinstance(e, ast.BinOp) and not isinstance(op, ast.MatMult):
            self._broadcast([(e.left, a), (e.right, b)], held)
        return held

    def _method(self, e: ast.Call, name: str, held: list[Held]) -> Held:
        outcome = super()._method(e, name, held)
        if name in _BROADCASTING:
            arguments = given(e)
            self._broadcast(list(zip(arguments, held[len(held) - len(arguments) :], strict=True)), outcome)
        return outcome

    def _broadcast(self, parts: list[tuple[ast.expr, Held]], outcome: Held) -> None:
        """Refuse a tensor beside the selected rows that may have one row for each of them, which are fewer than all."""
        for e, held in parts if outcome.sort is not Sort.FIXED else ():
            value = self.inference.of(e)
            own = self.inference.instance_attribute(e) is not None
            single = own or value.kind is Kind.PYTHON or value.is_scalar_tensor
            if held.sort is Sort.FIXED and not single:
                raise Refused(f"`{ast.unparse(e)}` may have a row for each that `{self.key}` selects")

    def _taken(self, e: ast.Call) -> Held:
        own, text = self.inference.instance_attribute(e.func), f"`{ast.unparse(e.func)}`"
        if isinstance(e.func, ast.Name) and self.inference.of(e.func).kind is not Kind.MODULE:
            if not self.regions.by_row(e):
                raise Refused(f"{text} may mix rows")
        elif own is not None and own[1] in self.class_facts(own[0]).methods:
            raise Refused(f"{text} is a method, which may mix rows")
        name = self.inference.of(e.func).module.rpartition(".")[2]
        for cls in self.syntax.by_type[ast.ClassDef]:
            if isinstance(cls, ast.ClassDef) and cls.name == name and (sign := mixes(cls, self.syntax)) is not None:
                raise Refused(f"{text} may mix rows, by `{sign}`")
        return super()._taken(e)


class _Region:
    """One region as it grows."""

    def __init__(self, regions: RowRegions) -> None:
        self.regions = regions
        self.steps: list[Step] = []
        self.reads: dict[ast.Subscript, None] = {}
        self.values: dict[str, _Rows] = {}
        self.packed: set[str] = set()
        self._held: dict[str, str] = {}

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
                self._write(into, ast.unparse(at), value)
            case ast.AugAssign(target=ast.Subscript(value=ast.Name() as into, slice=at), op=op, value=value):
                if not isinstance(op, _CHANGES):
                    raise Refused(f"`{ast.unparse(s)}` changes rows in a way that is not known")
                self._write(into, ast.unparse(at), value, op)
            case ast.Assign(targets=[ast.Name() | ast.Tuple() as target], value=value):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                if not all(isinstance(n, ast.Name) for n in names):
                    raise Refused(f"`{ast.unparse(s).splitlines()[0]}` is more than a computation on rows")
                self._bind(tuple(n.id for n in names if isinstance(n, ast.Name)), value)
            case _:
                raise Refused(f"`{ast.unparse(s).splitlines()[0]}` is more than a computation on rows")

    def _of(self, e: ast.expr) -> _Rows:
        """What knows the rows that ``e`` is made of, which are all selected by one mask."""
        masks = [n.slice for n in ast.walk(e) if isinstance(n, ast.Subscript) and self.regions.read(n)]
        keys = {ast.unparse(m) for m in masks}
        keys |= {self._held[n.id] for n in ast.walk(e) if isinstance(n, ast.Name) and n.id in self._held}
        if len(keys) != 1:
            raise Refused(f"`{ast.unparse(e).splitlines()[0]}` is not made of the rows of one mask")
        key = keys.pop()
        if key not in self.values:
            if not _plain(masks[0]):
                raise Refused(f"`{key}` is not a plain name")
            self.values[key] = _Rows(self.regions, masks[0], self.reads)
        return self.values[key]

    def _bind(self, names: tuple[str, ...], value: ast.expr) -> None:
        values = self._of(value)
        held = values.of(value)
        wanted = Sort.ROWS if len(names) == 1 else Sort.PARTS
        if held.sort is not wanted and (len(names) > 1 or held.sort is not Sort.PARTS):
            raise Refused(f"`{ast.unparse(value).splitlines()[0]}` is not known to keep rows apart")
        self._smooth(value)
        for name in names:
            if name in self._in_masks():
                raise Refused(f"the mask `{name}` changes")
            for others in self.values.values():
                others.bind(name, Held(Sort.EITHER))
            values.bind(name, ROWS if len(names) > 1 else Held(held.sort))
            self._held[name] = values.key
        self.packed |= set(names)
        self.steps.append(Step(value, values.mask, names))

    def _smooth(self, value: ast.expr) -> None:
        """Refuse what could send an infinite gradient to rows that the mask leaves out, where it would become a NaN."""
        for n in ast.walk(value) if not self.regions.facts.ask(GradientMode).off(value) else ():
            match n:
                case ast.BinOp(op=ast.Div(), right=right) if self._holds_rows(right):
                    steep = True
                case ast.BinOp(op=ast.Pow(), left=left, right=right):
                    whole = isinstance(right, ast.Constant) and isinstance(right.value, int) and right.value >= 1
                    steep = not whole and (self._holds_rows(left) or self._holds_rows(right))
                case ast.Call(func=ast.Attribute(value=of, attr=name) as func) if name in _STEEP:
                    function = self.regions.syntax.qualified(func) is not None
                    steep = self._holds_rows(n if function else of)
                case _:
                    steep = False
            if steep:
                raise Refused(f"the gradient of `{ast.unparse(n)}` may be infinite where the mask is not set")

    def _holds_rows(self, e: ast.AST) -> bool:
        return any((isinstance(n, ast.Name) and n.id in self._held) or self.regions.read(n) for n in ast.walk(e))

    def _in_masks(self) -> set[str]:
        return {n.id for v in self.values.values() for n in ast.walk(v.mask) if isinstance(n, ast.Name)}

    def _write(
        self, into: ast.Name, key: str, value: ast.expr, op: ast.operator | None = None, anew: bool = False
    ) -> None:
        values = self._of(value)
        if values.key != key:
            raise Refused(f"what `{values.key}` selects goes where `{key}` says")
        if into.id in self._in_masks():
            raise Refused(f"the mask `{into.id}` changes")
        if into.id in self._held or not self.regions.inference.of(into).is_tensor:
            raise Refused(f"`{into.id}` is not known to be a tensor with all rows")
        if values.of(value).sort is not Sort.ROWS:
            raise Refused(f"`{ast.unparse(value).splitlines()[0]}` is not known to keep rows apart")
        self._smooth(value)
        self.steps.append(Step(value, values.mask, (), into, op, anew))


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
