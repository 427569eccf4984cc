"""Index tensors that are one row for all samples: what they are made of, and where their copies go."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.calls import Calls
from patcher.facts.effects.totality import Effects
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Category, Kind

_CONTAINERS = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.Starred)
#: Attributes and methods that tell a view from a copy.
_TELLING = frozenset(
    "stride is_contiguous data_ptr storage untyped_storage storage_offset as_strided set_ resize_ is_set_to _base "
    "_is_view _version".split()
)
#: Methods that are an error where rows lie on top of each other and would be one.
_JOINING = frozenset({"view", "view_as"})
#: Methods that keep what they are given.
_KEEPING = frozenset("append extend insert setdefault update add put push register_buffer".split())
#: What only looks at a tensor's outside.
_LOOKS = frozenset("shape size device dtype ndim dim numel".split())
_LOOKING_BUILTINS = frozenset("len int float bool str repr print isinstance hasattr type range max min sum abs".split())
#: torch functions that call what they are given.
_CALLING = frozenset({"torch.utils.checkpoint.checkpoint", "torch.compile"})
#: What makes a dimension one that compiled code may ask nothing about.
_UNBACKED = frozenset({"torch._dynamo.decorators.mark_unbacked", "torch._dynamo.mark_unbacked"})


@dataclass(frozen=True)
class Row:
    """``torch.arange`` as (T) or (1, T), ``rank`` 1 or 2. ``length``: the expression of T, when the source says it."""

    rank: int
    length: ast.expr | None


@dataclass(frozen=True)
class Fate:
    """What becomes of a tensor in its function.

    ``crosses``: how it gets to code that may be compiled by itself, or None. ``obstacle``: why a copy in its place
    could be told from it, or None. ``unread``: what becomes of it in code that is not read, or None. ``marked``:
    whether its rows are marked unbacked, as they are for code that is compiled by itself, once for any batch.
    """

    crosses: str | None = None
    obstacle: str | None = None
    unread: str | None = None
    marked: bool = False

    def also(self, other: Fate) -> Fate:
        """Both together."""
        return Fate(
            self.crosses or other.crosses,
            self.obstacle or other.obstacle,
            self.unread or other.unread,
            self.marked or other.marked,
        )


class Indices(Analysis):
    """Recognises rows of indices, and follows tensors to where they leave a function."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)

    # --- where a row comes from -------------------------------------------------------------------------------------

    def row(self, e: ast.expr) -> Row | None:
        """``e`` as a row of integers that nobody else holds, or None."""
        value = self.inference.of(e)
        if value.dtype is None or value.dtype.category is not Category.INT:
            return None
        return self._row(e)

    def _row(self, e: ast.expr) -> Row | None:
        match e:
            case ast.Call() if self.syntax.qualified(e.func) == "torch.arange":
                return None if any(k.arg in ("out", None) for k in e.keywords) else Row(1, _length(e))
            case ast.Call(func=ast.Attribute(value=base, attr=name)) if self.syntax.qualified(e.func) is None:
                return self._reshaped(base, name, e.args, e.keywords)
            case ast.Call(args=[base, *rest]) if self.syntax.qualified(e.func) in ("torch.unsqueeze", "torch.reshape"):
                return self._reshaped(base, e.func.attr if isinstance(e.func, ast.Attribute) else "", rest, e.keywords)
            case ast.Subscript(value=base, slice=index):
                row = self._row(base)
                return replace(row, rank=2) if row is not None and row.rank == 1 and _adds_first(index) else None
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                base, other = (left, right) if self.inference.of(left).is_tensor else (right, left)
                return self._row(base) if self.inference.of(other).python in ("int", "size") else None
            case ast.Name():
                definitions = self.inference.definitions(e)
                d = next(iter(definitions)) if len(definitions) == 1 else None
                if d is None or d.how != "assign" or d.path or d.value is None or not self._only_looked_at(d, e):
                    return None
                row = self._row(d.value)
                if row is not None and not isinstance(row.length, (ast.Name, ast.Constant)):
                    return replace(row, length=None)  # what it reads may be something else by now
                return row
        return None

    def _reshaped(
        self, base: ast.expr, name: str, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> Row | None:
        row = self._row(base)
        if row is None:
            return None
        if name in ("to", "type", "long", "int", "contiguous", "clone", "cpu", "cuda", "detach"):
            return row
        texts = [ast.unparse(a) for a in (*arguments, *(k.value for k in keywords))]
        if name == "unsqueeze" and row.rank == 1:
            return replace(row, rank=2) if texts in (["0"], ["-2"]) else None
        if name in ("view", "reshape") and not keywords:
            whole = arguments[0] if len(arguments) == 1 else None
            sizes = whole.elts if isinstance(whole, (ast.Tuple, ast.List)) else arguments
            if len(sizes) == 2 and ast.unparse(sizes[0]) == "1" and not isinstance(sizes[1], ast.Starred):
                return replace(row, rank=2)
        return None

    def _only_looked_at(self, d: Definition, use: ast.Name) -> bool:
        """Whether, but for ``use``, no value is taken from what ``d`` binds, or by an operator that comes before it."""
        function = self.syntax.function_of(use)
        if function is None or self.flow_of(function).by_node.get(d.node) is not d:
            return False
        if d.name in self.flow_of(function).captured or _declared_outside(function, d.name):
            return False
        for other in self.flow_of(function).uses.get(d, ()):
            if other is use:
                continue
            parent = self.syntax.parents[self.effects.through_views(other)]
            looks = isinstance(parent, ast.Attribute) and parent.attr in _LOOKS
            before = other.lineno < use.lineno and not self._in_loop(use)
            operator = isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare))
            if not isinstance(other.ctx, ast.Load) or not (looks or (before and operator)):
                return False
        return True

    def _in_loop(self, e: ast.expr) -> bool:
        loops = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        return any(isinstance(parent, loops) for parent in self.syntax.ancestors(e))

    def same_number(self, length: ast.expr, at: ast.expr) -> bool:
        """Whether ``at`` is written like ``length``, an expression that came before it, and holds the same number."""
        before = [n for n in ast.walk(length) if isinstance(n, ast.Name)]
        now = [n for n in ast.walk(at) if isinstance(n, ast.Name)]
        if ast.dump(length) != ast.dump(at) or not all(map(_only_reads, ast.walk(at))):
            return False
        if self.syntax.statement_of(length) is self.syntax.statement_of(at):
            return True
        function = self.syntax.function_of(at)
        if function is None or self._in_loop(length):
            return False
        local = self.flow_of(function).reaching
        return all(local.get(a) and local.get(a) == local.get(b) for a, b in zip(before, now, strict=True))

    # --- where a tensor goes ----------------------------------------------------------------------------------------

    def fate(self, e: ast.expr) -> Fate:
        """What becomes of the tensor that ``e`` gives."""
        return self._fate(e, frozenset())

    def _fate(self, e: ast.expr, seen: frozenset[ast.AST]) -> Fate:
        outer: ast.expr = self.effects.through_views(e)
        parent = self.syntax.parents[outer]
        if any(isinstance(n, ast.Attribute) and n.attr in _JOINING for n in self._way(e, outer)):
            return Fate(obstacle="`view` is used on it")
        if isinstance(outer, ast.Subscript) and not isinstance(outer.ctx, ast.Load):
            return Fate(obstacle="it is changed in place")
        while isinstance(parent, (*_CONTAINERS, ast.keyword)):
            if isinstance(parent, ast.keyword) and parent.arg in ("out", None):
                return Fate(obstacle="it is written to")
            outer, parent = parent, self.syntax.parents[parent]  # type: ignore[assignment]
        match parent:
            case ast.Return():
                return Fate(crosses="it is returned", unread="the caller writes to no row of the ids")
            case ast.AugAssign(target=target) if target is outer:
                return Fate(obstacle="it is changed in place")
            case ast.Attribute(attr=name):
                if name in _TELLING or (name.endswith("_") and not name.endswith("__")):
                    return Fate(obstacle=f"`{name}` is used on it")
            case ast.Call(func=func) if self.syntax.qualified(func) in _UNBACKED:
                return Fate(marked=_marks_rows(parent))
            case ast.Call(func=func) if func is not outer:
                return Fate() if self._is_converted(e, outer) else self._handed_to(parent).also(self._read_by(parent))
            case ast.Assign(targets=targets):
                return self._assigned(targets, outer, seen)
            case ast.AnnAssign(target=target) | ast.NamedExpr(target=target):
                return self._assigned([target], outer, seen)
            case ast.For() | ast.comprehension() if isinstance(outer, _CONTAINERS):
                return Fate(obstacle="it is kept in a container")
            case ast.Yield() | ast.YieldFrom() | ast.Await() | ast.Delete() | ast.Lambda() | ast.withitem():
                return Fate(obstacle="it is handed on")
        return Fate()

    def _way(self, e: ast.expr, outer: ast.expr) -> Iterator[ast.AST]:
        """The expressions around ``e``, up to ``outer``, which is around it too, or is it."""
        n: ast.AST = e
        while n is not outer and isinstance(n, ast.expr):
            n = self.syntax.parents[n]
            yield n

    def _is_converted(self, e: ast.expr, outer: ast.AST) -> bool:
        """Whether a conversion to floating numbers stands between ``e`` and ``outer``: it gives strides of its own."""
        while e is not outer and isinstance(e, ast.expr):
            value = self.inference.of(e)
            if value.dtype is not None and value.dtype.category is Category.FLOAT:
                return True
            e = self.syntax.parents[e]  # type: ignore[assignment]
        value = self.inference.of(outer) if isinstance(outer, ast.expr) else None
        return value is not None and value.dtype is not None and value.dtype.category is Category.FLOAT

    def _assigned(self, targets: list[ast.expr], value: ast.AST, seen: frozenset[ast.AST]) -> Fate:
        if isinstance(value, _CONTAINERS):
            return Fate(obstacle="it is kept in a container")
        fate = Fate()
        for target in targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                continue
            function = self.syntax.function_of(target)
            if not isinstance(target, ast.Name) or function is None:
                return Fate(obstacle=f"it is kept as `{ast.unparse(target)}`")
            if target.id in self.flow_of(function).captured or _declared_outside(function, target.id):
                return Fate(obstacle=f"`{target.id}` is read by a nested function")
            d = self.flow_of(function).by_node.get(target)
            if d is None or target in seen:
                continue
            for use in self.flow_of(function).uses.get(d, ()):
                if not isinstance(use.ctx, ast.Load):
                    return Fate(obstacle=f"`{target.id}` is changed in place")
                fate = fate.also(self._fate(use, seen | {target}))
        return fate

    def _read_by(self, call: ast.Call) -> Fate:
        """Whether what ``call`` runs can tell a view from a copy, as far as it is read."""
        called = self.facts.ask(Calls).of(call)
        name = ast.unparse(call.func).splitlines()[0][:40]
        functions = self.facts.ask(Callees).of(call)
        asked = {m.rpartition(".")[2] for f in functions for m in self.project.effects.mentioned(f)}
        if called.runs or called.writes or not (_TELLING | _JOINING).isdisjoint(asked):
            return Fate(unread=f"`{name}` writes to no row of the ids, and does not ask for their strides")
        return Fate()

    def _handed_to(self, call: ast.Call) -> Fate:
        func = call.func
        what = self.syntax.qualified(func)
        text = f"it is handed to `{ast.unparse(func).splitlines()[0][:40]}`"
        if what is not None:
            if what.startswith("torch."):
                if what.endswith("_") or any(k.arg == "inplace" for k in call.keywords):
                    return Fate(obstacle="it may be changed in place")
                return Fate(crosses=text) if what in _CALLING else Fate()
            return Fate(crosses=text) if self._is_compiled(what) or self._builds_module(what) else Fate()
        if isinstance(func, ast.Name):
            if self.syntax.is_builtin(func):
                return Fate() if func.id in _LOOKING_BUILTINS else Fate(obstacle="it is handed on")
            known = self.inference.definitions(func) or self._is_compiled(f"{self.module}.{func.id}")
            return Fate(crosses=text) if known else Fate()
        if not isinstance(func, ast.Attribute):
            return Fate(crosses=text)
        own = self.inference.instance_attribute(func)
        receiver = self.inference.of(func if own is not None else func.value)
        if func.attr in _KEEPING or (func.attr.endswith("_") and not func.attr.endswith("__")):
            return Fate(obstacle=f"`{func.attr}` may keep it or write to it")
        if receiver.kind is Kind.MODULE:
            return Fate(crosses=text)
        if own is not None:
            return Fate(crosses=text)
        if receiver.is_tensor or func.attr in api.TENSOR_ONLY | api.ALIASING:
            return Fate()
        rooted = self._rooted_at_instance(func) or isinstance(func.value, ast.Call)
        known_method = any(func.attr in c.methods for _, c in self.project.classes())
        return Fate(crosses=text) if rooted or known_method else Fate()

    def _is_compiled(self, what: str) -> bool:
        """Whether the function of that dotted name is compiled by itself; a plain one is traced with its caller."""
        function = self.project.function(what)
        return function is not None and function.compiled

    def _builds_module(self, what: str) -> bool:
        return self.project.known_class(what) is not None and self.project.is_module_class(what)

    def _rooted_at_instance(self, e: ast.expr) -> bool:
        while isinstance(e, (ast.Attribute, ast.Subscript)):
            if isinstance(e, ast.Attribute) and self.inference.instance_attribute(e) is not None:
                return True
            e = e.value
        return False


def _length(arange: ast.Call) -> ast.expr | None:
    """How many numbers ``torch.arange`` gives, when its arguments are written as ``n``, ``0, n`` or ``s, s + n``."""
    keywords = {k.arg: k.value for k in arange.keywords}
    if "start" in keywords or "step" in keywords:
        return None
    match [*arange.args, *([keywords["end"]] if "end" in keywords else [])]:
        case [ast.Starred(), *_]:
            return None
        case [end] | [ast.Constant(value=0), end]:
            return end
        case [ast.Name() as start, ast.BinOp(left=left, op=ast.Add(), right=right)]:
            if ast.dump(start) == ast.dump(left):
                return right
            if ast.dump(start) == ast.dump(right):
                return left
    return None


def _marks_rows(call: ast.Call) -> bool:
    """Whether ``mark_unbacked(ids, dims)`` says so of the first of two dimensions."""
    given = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "index")]
    dims = [d for g in given for d in (g.elts if isinstance(g, (ast.Tuple, ast.List)) else [g])]
    return any(ast.unparse(d) in ("0", "-2") for d in dims)


def _adds_first(index: ast.expr) -> bool:
    """Whether ``x[index]`` of a row puts a dimension in front and leaves the rest."""
    return ast.unparse(index) in ("None", "(None, :)", "(None, ...)", "None, :", "None, ...")


def _only_reads(e: ast.AST) -> bool:
    """Whether evaluating ``e`` again, its parts aside, gives the same; of calls, only ``x.size(0)`` and ``len(x)``."""
    if isinstance(e, ast.Call):
        return last_name(e.func) in ("size", "len")
    return not isinstance(e, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom))


def _declared_outside(function: FunctionNode, name: str) -> bool:
    return any(isinstance(n, (ast.Global, ast.Nonlocal)) and name in n.names for n in ast.walk(function))
