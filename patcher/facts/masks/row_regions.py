"""Statements that compute something of the rows that a mask selects and write it back through that mask.

``h = h.masked_scatter(m.unsqueeze(-1), norm(h[m]))``, ``out[~m] = mlp(x[~m])``, ``h[m] += expert(rows)``: over all rows
the same, with a choice by the mask where something is written, and every shape is known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.groups.row_values import Held, Refused, RowValues, Sort
from patcher.facts.masks.by_row import RowCalls
from patcher.facts.masks.masked_reads import MaskedReads
from patcher.facts.masks.mixing import mixes
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind

_STEEP = api.STEEP_FLOAT | frozenset("norm std var pow div prod true_divide".split())
_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True)
class RowRegion:
    """Neighbours in one block, and ``lines``, their static form.

    ``first``: the first read through a mask. ``masks``: how the masks are spelled. ``taken_for``: the callables that
    are taken to compute each row by itself.
    """

    statements: tuple[ast.stmt, ...]
    lines: tuple[str, ...]
    first: ast.expr
    masks: frozenset[str]
    taken_for: tuple[str, ...]

    @property
    def granted(self) -> str:
        """What its static form takes for granted."""
        masks = " and ".join(f"`{m}`" for m in sorted(self.masks))
        takes = " and ".join(f"`{t}`" for t in self.taken_for)
        taken = f", and takes {takes} row by row" if takes else ""
        return f"compiled code computes all rows for {masks}{taken}: more work and other rounding"


class RowRegions(Analysis):
    """Such neighbours in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.masked_reads = facts.ask(MaskedReads)
        self.by_row = facts.ask(RowCalls).rowwise

    def of(self, statement: ast.stmt, names: tuple[str, str]) -> RowRegion | str | None:
        """The region that ``statement`` starts, with ``names`` for rows and mask; why there is none, or None.

        None for a statement that writes nothing through a mask and computes nothing of rows.
        """
        if not isinstance(statement, (ast.Assign, ast.AugAssign)):
            return None
        function, block = self.syntax.function_of(statement), self.syntax.block_of(statement)
        if function is None or not self.starts(statement):
            return None
        writing = _Writing(self, names)
        taken: list[ast.stmt] = []
        whole: RowRegion | str = "the rows are packed, and their number goes on with them"
        for s in block[block.index(statement) :]:
            if not isinstance(s, (ast.Assign, ast.AugAssign)) or not self.syntax.alone(s):
                break
            try:
                writing.add(s)
            except Refused as refusal:
                whole = str(refusal) if isinstance(whole, str) else whole
                break
            taken.append(s)
            if writing.written and not self._leaves(writing.packed, taken, function) and writing.joined(s):
                assumed = tuple(dict.fromkeys(t for v in writing.values.values() for t in v.assumed()))
                assert writing.first is not None
                whole = RowRegion(tuple(taken), tuple(writing.lines), writing.first, frozenset(writing.values), assumed)
        return whole

    def holding(self, statement: ast.stmt) -> RowRegion | None:
        """The region that ``statement`` is a part of."""
        block = self.syntax.block_of(statement)
        for s in block[: block.index(statement) + 1]:
            region = self.of(s, ("", ""))
            if isinstance(region, RowRegion) and statement in region.statements:
                return region
        return None

    def enclosing(self, region: RowRegion, names: tuple[str, str]) -> str:
        """The template of an ``if`` with the static form in its first clause; ``region`` goes into the second one."""
        written = self.of(region.statements[0], names)
        assert isinstance(written, RowRegion)
        text = "".join(["if torch.compiler.is_compiling():", *(f"\n    {line}" for line in written.lines), "\nelse:"])
        return text.replace("{", "{{").replace("}", "}}")

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
        flow, inside = self.flow_of(function), {n for s in taken for n in ast.walk(s)}
        if packed & flow.captured:
            return True
        bound = [d for n, d in flow.by_node.items() if n in inside and d.name in packed]
        return any(use not in inside for d in bound for use in flow.uses.get(d, ()))


class _Rows(RowValues):
    """What is computed of the rows that the mask ``key`` selects."""

    def __init__(self, regions: RowRegions, mask: ast.expr, first: Callable[[ast.expr], None]) -> None:
        super().__init__(regions.facts)
        self.regions = regions
        self.key = ast.unparse(mask)
        self.dimensions = f"{_bare(mask)}.dim() - 1"
        self.first = first

    def over_all(self, e: ast.expr) -> str:
        """``e``, a tensor that the mask fits, with one row after the other."""
        text = ast.unparse(e)
        return f"{text}.flatten(0, {self.dimensions})"

    def _subscript(self, e: ast.expr, value: ast.expr, at: ast.expr) -> Held:
        if not self.regions.read(e):
            return super()._subscript(e, value, at)
        if ast.unparse(at) != self.key:
            raise Refused(f"`{ast.unparse(e)}` has other rows than `{self.key}` selects")
        self.fixed(value)
        if not isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)):
            raise Refused(f"`{ast.unparse(value)}` is not a plain name")
        self.first(e)
        self._replaced[e] = ast.parse(f"{self.over_all(value)}.clone()", mode="eval").body
        return Held(Sort.ROWS)

    def _taken(self, e: ast.Call) -> Held:
        syntax, inference = self.regions.syntax, self.regions.inference
        own, text = inference.instance_attribute(e.func), f"`{ast.unparse(e.func)}`"
        if isinstance(e.func, ast.Name) and inference.of(e.func).kind is not Kind.MODULE:
            if not self.regions.by_row(e):
                raise Refused(f"{text} may mix rows")
        elif own is not None and own[1] in inference.class_facts(own[0]).methods:
            raise Refused(f"{text} is a method, which may mix rows")
        name = inference.of(e.func).module.rpartition(".")[2]
        for cls in syntax.by_type[ast.ClassDef]:
            if isinstance(cls, ast.ClassDef) and cls.name == name and (sign := mixes(cls, syntax)) is not None:
                raise Refused(f"{text} may mix rows, by `{sign}`")
        return super()._taken(e)


class _Writing:
    """One region on its way into the static form."""

    def __init__(self, regions: RowRegions, names: tuple[str, str]) -> None:
        self.regions = regions
        self.rows, self.picked = names
        self.lines: list[str] = []
        self.values: dict[str, _Rows] = {}
        self.first: ast.expr | None = None
        self.packed: set[str] = set()
        self.written = False
        self._held: dict[str, str] = {}

    def joined(self, s: ast.stmt) -> bool:
        """Whether the region may end with ``s``: it writes."""
        return not isinstance(s, ast.Assign) or not isinstance(s.targets[0], ast.Name) or _scattered(s) is not None

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
                self._write(into, key, value, "", f"{name} = ")
            case ast.Assign(targets=[ast.Subscript(value=ast.Name() as into, slice=at)], value=value):
                self._write(into, ast.unparse(at), value, "", f"{into.id}.copy_")
            case ast.AugAssign(target=ast.Subscript(value=ast.Name() as into, slice=at), op=op, value=value):
                if type(op) not in _SIGNS:
                    raise Refused(f"`{ast.unparse(s)}` changes rows in a way that is not known")
                self._write(into, ast.unparse(at), value, _SIGNS[type(op)], f"{into.id}.copy_")
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._bind([name], value)
            case ast.Assign(targets=[ast.Tuple(elts=elts)], value=value) if all(isinstance(t, ast.Name) for t in elts):
                self._bind([t.id for t in elts if isinstance(t, ast.Name)], value)
            case _:
                raise Refused(f"`{ast.unparse(s).splitlines()[0]}` is more than a computation on rows")

    def _seen(self, e: ast.expr) -> None:
        self.first = self.first or e

    def _of(self, e: ast.expr) -> _Rows:
        """What knows the rows that ``e`` is made of, which are all selected by one mask."""
        masks = [n.slice for n in ast.walk(e) if isinstance(n, ast.Subscript) and self.regions.read(n)]
        keys = {ast.unparse(m) for m in masks}
        keys |= {self._held[n.id] for n in ast.walk(e) if isinstance(n, ast.Name) and n.id in self._held}
        if len(keys) != 1:
            raise Refused(f"`{ast.unparse(e).splitlines()[0]}` is not made of the rows of one mask")
        key = keys.pop()
        if key not in self.values:
            mask = masks[0]
            if not _plain(mask):
                raise Refused(f"`{key}` is not a plain name")
            self.values[key] = _Rows(self.regions, mask, self._seen)
        return self.values[key]

    def _bind(self, names: list[str], value: ast.expr) -> None:
        values = self._of(value)
        held = values.of(value)
        wanted = Sort.ROWS if len(names) == 1 else Sort.PARTS
        if held.sort is not wanted and (len(names) > 1 or held.sort is not Sort.PARTS):
            raise Refused(f"`{ast.unparse(value).splitlines()[0]}` is not known to keep rows apart")
        self._smooth(value)
        text = values.written(value)
        self._rebound(names)
        for name in names:
            values.bind(name, Held(Sort.ROWS) if len(names) > 1 else Held(held.sort))
            self._held[name] = values.key
        self.packed |= set(names)
        self.lines.append(f"{', '.join(names)} = {text}")

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
        return {n.id for key in self.values for n in ast.walk(ast.parse(key)) if isinstance(n, ast.Name)}

    def _rebound(self, names: list[str]) -> None:
        """Names get another meaning."""
        for name in names:
            if name in self._in_masks():
                raise Refused(f"the mask `{name}` changes")
            for values in self.values.values():
                values.bind(name, Held(Sort.EITHER))

    def _write(self, into: ast.Name, key: str, value: ast.expr, sign: str, how: str) -> None:
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
        text, old = values.written(value), values.over_all(into)
        if sign:
            bare = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
            text = f"{old} {sign} {text}" if bare else f"{old} {sign} ({text})"
        mask = key if key.isidentifier() else f"({key})"
        merged = f"torch.where({self.picked}, {self.rows}, {old}).reshape({into.id}.shape)"
        self.lines += [
            f"{self.rows} = {text}",
            f"{self.picked} = {mask}.reshape({self.rows}.shape[0], *[1] * ({self.rows}.dim() - 1))",
            f"{how}{merged}" if how.endswith("= ") else f"{how}({merged})",
        ]
        self.written = True


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


def _bare(mask: ast.expr) -> str:
    """``mask``, or what is turned there; both have the same shape."""
    return ast.unparse(mask.operand if isinstance(mask, ast.UnaryOp) else mask)
