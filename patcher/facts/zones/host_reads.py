"""Where a function reads the data of a tensor on the host, so that a graph breaks, and whether that always runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.values.types import FOREIGN, Kind

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ESCAPES = (ast.Return, ast.Continue, ast.Break)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: Methods without an argument that copy data to the host.
_COPIES = frozenset({"item", "tolist"})
#: Functions and methods whose result has as many elements as the data says.
_SIZED_BY_DATA = frozenset({"nonzero", "argwhere", "unique", "unique_consecutive", "masked_select"})
#: Builtins that may leave some elements of what they are given alone.
_LAZY = frozenset("any all next iter zip map filter enumerate".split())
#: Functions that take sizes or ends, which have to be numbers.
_TAKE_NUMBERS = frozenset("arange zeros ones full empty linspace".split())

_TESTING = (ast.If, ast.While, ast.IfExp)
#: Names of functions and methods that may read.
_ASKING = _COPIES | _SIZED_BY_DATA | _TAKE_NUMBERS | set("where repeat_interleave int float bool range".split())
#: Indices that are no tensors.
_NO_MASKS = frozenset({ast.Constant, ast.Slice})


@dataclass(frozen=True)
class HostRead:
    """``node`` reads, in ``statement``. ``top``: the one of the function's body that holds it. ``looped``: in a loop.

    ``certain``: it runs whenever ``top`` does; a loop is taken to run once at least.
    """

    node: ast.expr
    statement: ast.stmt
    top: ast.stmt
    certain: bool
    looped: bool


class HostReads(Analysis):
    """The reads in the functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[FunctionNode, tuple[HostRead, ...]] = {}

    def of(self, function: FunctionNode) -> tuple[HostRead, ...]:
        """The reads of ``function`` in order, without those of functions that it defines or calls."""
        if function not in self._known:
            asking = self.syntax.own(function, ast.Call, ast.Subscript, *_TESTING)
            found = (self._placed(e, function) for n in asking for e in _may_read(n))
            reads = [r for r in found if r is not None]
            self._known[function] = tuple(sorted(reads, key=lambda r: (r.node.lineno, r.node.col_offset)))
        return self._known[function]

    def _placed(self, e: ast.expr, function: FunctionNode) -> HostRead | None:
        if not self.is_read(e):
            return None
        certain, looped = True, False
        child: ast.AST = e
        for parent in self.syntax.ancestors(e):
            if parent is function:
                break
            certain = certain and self.always_runs(child, parent)
            looped |= isinstance(parent, _LOOPS) and child is not getattr(parent, "iter", None)
            looped |= isinstance(parent, _COMPREHENSIONS) and not _is_first(child, parent)
            child = parent
        assert isinstance(child, ast.stmt)
        return HostRead(e, self.syntax.statement_of(e), child, certain, looped)

    def always_runs(self, child: ast.AST, parent: ast.AST) -> bool:
        """Whether ``child`` runs whenever ``parent``, which holds it, does."""
        match parent:
            case ast.If() | ast.IfExp():
                return child is parent.test
            case ast.BoolOp(values=[first, *_]):
                return child is first
            case ast.Compare(left=left, comparators=[first, *_]):
                return child in (left, first)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return _is_first(child, parent) or (not _is_filtered(parent) and self._is_used_up(parent))
            case ast.For(orelse=late) | ast.AsyncFor(orelse=late) | ast.While(orelse=late):
                return child not in late and self._comes_by(child, parent.body)
            case ast.With(body=body) | ast.AsyncWith(body=body):
                return self._comes_by(child, body)
            case ast.Try(body=body, finalbody=final):
                return child in final or (child in body and self._comes_by(child, body))
        return not isinstance(parent, (ast.match_case, ast.ExceptHandler))

    def _is_used_up(self, comprehension: ast.AST) -> bool:
        """Whether its elements are made there: what a generator gives may be asked for later, or never."""
        around = self.syntax.parents[comprehension]
        lazy = isinstance(comprehension, ast.GeneratorExp)
        return not lazy or (isinstance(around, ast.Call) and getattr(around.func, "id", "") not in _LAZY)

    def _comes_by(self, child: ast.AST, body: list[ast.stmt]) -> bool:
        before = body[: body.index(child)] if isinstance(child, ast.stmt) and child in body else []
        return not any(isinstance(n, _ESCAPES) for s in before for n in ast.walk(s))

    # --- what is a read ---------------------------------------------------------------------------------------------

    def is_read(self, e: ast.expr) -> bool:
        """Whether ``e`` needs the data of a tensor on the host, for all that is known."""
        parent = self.syntax.parents.get(e)
        if isinstance(parent, (ast.If, ast.While, ast.IfExp)) and parent.test is e:
            return self.is_tensor(e) and not self._is_guard(parent)
        if not isinstance(e, (ast.Call, ast.Subscript)):
            return False
        return self._needs_data(e) and not any(isinstance(p, ast.Assert) for p in self.syntax.ancestors(e))

    def _needs_data(self, e: ast.Call | ast.Subscript) -> bool:
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr=name), args=[], keywords=[]) if name in _COPIES:
                return self._may_be_tensor(held, name)
            case ast.Call(func=ast.Attribute(value=held, attr=name)) if name in _SIZED_BY_DATA:
                what = self.syntax.qualified(e.func)
                return self._may_be_tensor(held, name) if what is None else what.startswith("torch.")
            case ast.Call(func=ast.Attribute(attr="where"), args=[_], keywords=[]):
                return self.syntax.qualified(e.func) == "torch.where"
            case ast.Call(func=ast.Attribute(attr="repeat_interleave"), args=args, keywords=keywords):
                named = {k.arg: k.value for k in keywords}
                own = self.syntax.qualified(e.func) != "torch.repeat_interleave"
                counts = named.get("repeats", args[0 if own else 1] if len(args) > (not own) else None)
                return "output_size" not in named and counts is not None and self.is_tensor(counts)
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in _TAKE_NUMBERS:
                torch = (self.syntax.qualified(e.func) or "").startswith("torch.")
                return torch and any(map(self.is_tensor, args))
            case ast.Call(args=args) if self.syntax.builtin(e) in ("int", "float", "bool", "range"):
                return any(map(self.is_tensor, args))
            case ast.Subscript(ctx=ast.Load(), slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return any(self._is_mask(p) for p in parts) and self.inference.of(e.value).kind is not Kind.PYTHON
        return False

    def _may_be_tensor(self, held: ast.expr, method: str) -> bool:
        """Whether ``held`` is a tensor, or may be one and nothing in this file has a method of that name."""
        value = self.inference.of(held)
        if value is FOREIGN or value.kind in (Kind.PYTHON, Kind.MODULE):
            return False
        return method not in self._methods or self.is_tensor(held)

    @cached_property
    def _methods(self) -> set[str]:
        """The names of all methods that this file defines."""
        functions = self.syntax.by_type[ast.FunctionDef]
        return {f.name for f in functions if isinstance(self.syntax.parents[f], ast.ClassDef)}

    def _is_mask(self, e: ast.expr) -> bool:
        other = isinstance(e, ast.UnaryOp) and not isinstance(e.op, (ast.Invert, ast.Not))
        if other or isinstance(e, (ast.Constant, ast.Slice)):
            return False
        return self.inference.of(e).is_boolean and self.is_tensor(e)

    def _is_guard(self, parent: ast.AST) -> bool:
        """Whether ``parent`` does no more than raise: that is a check, which can stay in a graph as one."""
        return isinstance(parent, ast.If) and isinstance(parent.body[-1], ast.Raise) and not parent.orelse

    def is_tensor(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether ``e`` is a tensor, and not by an annotation alone: numbers are given to many a parameter as well."""
        if not self.inference.of(e).is_tensor:
            return False
        match e:
            case ast.Call() | ast.Attribute():
                return True
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                return self.is_tensor(left, seen) or self.is_tensor(right, seen)
            case ast.UnaryOp(operand=operand):
                return self.is_tensor(operand, seen)
            case ast.Subscript(value=value, slice=index):
                return isinstance(index, (ast.Tuple, ast.Slice)) or self.is_tensor(value, seen)
            case ast.Name():
                definitions = self.inference.definitions(e) - seen
                assigned = [d.value for d in definitions if d.how == "assign" and d.value is not None]
                known = bool(assigned) and len(assigned) == len(definitions)
                return known and all(
                    bool(d.path) or self.is_tensor(d.value, seen | definitions)
                    for d in definitions
                    if d.value is not None
                )
        return False


def _may_read(n: ast.AST) -> list[ast.expr]:
    """What may be a read by itself: a call, a subscript, and the test that ``n`` makes of another expression."""
    if isinstance(n, (ast.Call, ast.Subscript)):
        return [n] if _asks(n) else []
    test = n.test if isinstance(n, _TESTING) else None
    return [test] if test is not None and not _asks(test) else []


def _asks(e: ast.expr) -> bool:
    """Whether ``e`` is written like a read."""
    if isinstance(e, ast.Call):
        return last_name(e.func) in _ASKING
    return isinstance(e, ast.Subscript) and type(e.slice) not in _NO_MASKS


def _is_first(child: ast.AST, comprehension: ast.AST) -> bool:
    """Whether ``child`` is what the comprehension iterates over first (its reads run once)."""
    return isinstance(child, ast.comprehension) and child is comprehension.generators[0]  # type: ignore[attr-defined]


def _is_filtered(comprehension: ast.AST) -> bool:
    return any(g.ifs for g in comprehension.generators)  # type: ignore[attr-defined]
