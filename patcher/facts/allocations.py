"""Where a cache makes the tensors that it later writes in place, and which of them are marked for CUDA graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import torch_api as api
from patcher.facts.bookkeeping import elements_of, last_name
from patcher.facts.caches import Cache
from patcher.facts.classes import INITIALISERS, ClassFacts, Store, pairs, self_name
from patcher.facts.infer import Inference
from patcher.facts.marks import Marks, own_calls
from patcher.facts.origins import Origins, own_nodes, parts_of
from patcher.facts.project import Project
from patcher.facts.syntax import Syntax

#: Functions of torch that make a tensor which nobody else has.
_NEW = frozenset(
    f"torch.{n}"
    for n in "zeros ones empty full rand randn zeros_like ones_like empty_like full_like rand_like randn_like".split()
)
_NEW_METHODS = frozenset({"new_zeros", "new_ones", "new_empty", "new_full"})
#: Methods that give a tensor on a tensor: a new one, the same one, or a view, each of which is an object to mark.
_KEEPING = frozenset(
    "to cuda cpu type half float double bfloat16 contiguous clone detach repeat view reshape expand permute transpose "
    "unsqueeze squeeze requires_grad_ zero_ fill_ normal_ uniform_ pin_memory share_memory_".split()
)
_JOINING = frozenset({"torch.stack", "torch.cat", "torch.concat"})
_PLAIN = (ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
_TENSOR, _LIST, _EMPTY, _EMPTY_LIST, _STATIC = "tensor", "list", "empty", "empty list", "static"


@dataclass(frozen=True, eq=False)
class Allocation:
    """``statement`` puts a new tensor at ``place`` (source text), or, with ``each``, a list of them."""

    statement: ast.stmt
    buffer: str
    place: str
    each: bool


@dataclass(frozen=True, eq=False)
class Allocations:
    """The allocations of a cache's buffers that are not marked, in order, or the ``reason`` why not all are known."""

    buffers: tuple[str, ...]
    made: tuple[Allocation, ...]
    node: ast.AST
    reason: str = ""


@dataclass(frozen=True, eq=False)
class _Store:
    """``how``: "whole" (``self.x = value``), "append" or "item" (``self.x[i] = value``); no value: not understood."""

    buffer: str
    statement: ast.stmt
    method: ast.FunctionDef
    how: str
    value: ast.expr | None
    item: str = ""


def allocations_of(
    cache: Cache, facts: ClassFacts, syntax: Syntax, inference: Inference, project: Project, qualname: str
) -> Allocations | None:
    """What is to be marked in ``cache``; None when its buffers are not written in compiled code, or all are marked."""
    return _Allocating(cache, facts, syntax, inference, project, qualname).found()


class _Allocating:
    """One cache, read with the question where its buffers come from."""

    def __init__(
        self, cache: Cache, facts: ClassFacts, syntax: Syntax, inference: Inference, project: Project, qualname: str
    ) -> None:
        self.cache = cache
        self.facts = facts
        self.syntax = syntax
        self.inference = inference
        self.project = project
        self.qualname = qualname
        self.origins = Origins(cache.cls, syntax, inference)
        self.methods = [f for fs in self.origins.own.values() for f in fs]
        self.initial = self._initial()
        self.resets = {m.function for m in cache.methods if m.only_resets}
        self.buffers = cache.buffers
        self.written = self._written()
        self.buffers |= self.written - cache.index
        self.stores = [s for f in self.methods for s in self._stores(f)]

    def found(self) -> Allocations | None:
        if self.cache.foreign is not None or self._index_is_tensor() or not self.cache.buffers & self.written:
            return None
        marks = Marks(self.cache.cls, self.buffers, self.origins, self.project)
        given = [(s.buffer, s.method, s.value) for s in self.stores]
        stores = [s for s in self.stores if not marks.at(s.method, s.buffer, given)]
        made: list[Allocation] = []
        reason = self._unclear(marks)
        at: ast.AST = self.cache.cls
        for s in stores:
            kind = self._kind(s.value)
            if s.how == "item" and not self._is_list(s.buffer):
                continue  # a write into the tensor itself
            if kind in (_EMPTY, _EMPTY_LIST, _STATIC) and s.how != "append":
                continue
            why = self._why_not(s, kind)
            if why and not reason:
                reason, at = why, s.statement
            place = f"{self_name(s.method)}.{s.buffer}{s.item}"
            made.append(Allocation(s.statement, s.buffer, place, kind == _LIST))
        if not made and (not reason or marks.inside or marks.elsewhere):
            return None  # all are marked
        buffers = tuple(sorted({a.buffer for a in made} or self.buffers))
        return Allocations(buffers, tuple(made), at if reason else made[0].statement, reason)

    # --- does the question arise ------------------------------------------------------------------------------------

    def _index_is_tensor(self) -> bool:
        values = [s.value for name in self.cache.index for s in self.facts.stores.get(name, ()) if s.value is not None]
        for f in self.methods:
            for n in own_nodes(f):
                match n:
                    case ast.Call(func=ast.Attribute(value=base, attr="append"), args=[value]):
                        values += [value] if self.origins.attribute(base) in self.cache.index else []
        return any(map(self._may_be_tensor, values)) or any(m.host_reads for m in self.cache.methods)

    def _may_be_tensor(self, e: ast.expr) -> bool:
        inner = elements_of(e)
        return any(map(self._may_be_tensor, inner)) if inner is not None else self.inference.of(e).is_tensor

    def _written(self) -> frozenset[str]:
        """The attributes that methods other than eager zones and resets write in place, if they look like tensors."""
        found: set[str] = set()
        for f in self.methods:
            if f in self.initial or f in self.resets or self._disabled(f):
                continue
            for n in own_nodes(f):
                match n:
                    case ast.Subscript(value=value, slice=part, ctx=ast.Store()):
                        sure = isinstance(part, ast.Tuple)
                    case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr.endswith("_"):
                        sure = not attr.endswith("__")
                    case _:
                        continue
                name = self._root(value)
                values = [s.value for s in self.facts.stores.get(name or "", ()) if s.method is not None]
                tensors = (_TENSOR in map(self._kind, values)) or (sure and any(map(self._seems_tensor, values)))
                if name is not None and (name in self.buffers or tensors):
                    found.add(name)
        return frozenset(found)

    def _seems_tensor(self, e: ast.expr | None) -> bool:
        """Whether ``e``, into which something is written as into a tensor, may be one."""
        return e is not None and (self._is_given(e) or self._kind(e) == _LIST or self.inference.of(e).is_tensor)

    def _is_given(self, e: ast.expr) -> bool:
        """Whether a parameter is among what ``e`` may be."""
        return isinstance(e, ast.Name) and any(d.how == "parameter" for d in self.inference.definitions(e))

    def _root(self, e: ast.expr, depth: int = 0) -> str | None:
        """``x`` when ``e`` is ``self.x``, a part of it, or a local name of one."""
        while isinstance(e, ast.Subscript) or (isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute)):
            e = e.value if isinstance(e, ast.Subscript) else e.func.value  # type: ignore[attr-defined]
        if isinstance(e, ast.Name) and depth < 4:
            parts = [p for d in self.inference.definitions(e) for p in parts_of(d) if d.how in ("assign", "iteration")]
            return self._root(parts[0], depth + 1) if len(parts) == 1 and isinstance(parts[0], ast.expr) else None
        return self.origins.attribute(e)

    def _disabled(self, f: ast.FunctionDef) -> bool:
        decorators = [d.func if isinstance(d, ast.Call) else d for d in f.decorator_list]
        return any(self.syntax.qualified(d) in api.DISABLE for d in decorators)

    # --- which methods run when -------------------------------------------------------------------------------------

    def _initial(self) -> set[ast.FunctionDef]:
        """The initialisers, and the private methods that only they call."""
        calls = {g: {f for _, f in own_calls(g, self.origins)} for g in self.methods}
        found = {f for f in self.methods if f.name in INITIALISERS}
        for _ in range(3):
            for f in self.methods:
                by = {g for g in self.methods if f in calls[g]}
                if f.name.startswith("_") and not f.name.endswith("__") and by and by <= found:
                    found.add(f)
        return found

    @cached_property
    def _always_in_graphs(self) -> set[ast.FunctionDef]:
        """The methods that compiled code may call, those aside that it reaches through a condition only."""
        seeds = [m.function for m in self.cache.methods if m.function not in self.resets]
        seeds += [f for f in self.methods if self.project.reached(f"{self.qualname}.{f.name}")]
        found: set[ast.FunctionDef] = set()
        while seeds:
            f = seeds.pop()
            if f in found or f in self.initial or self._disabled(f):
                continue
            found.add(f)
            seeds += [called for n, called in own_calls(f, self.origins) if not self._conditional(n, f)]
        return found

    def _conditional(self, node: ast.AST, f: ast.FunctionDef) -> bool:
        """Whether ``f`` may run without ``node``: it stands under a test, or behind one that returns."""
        child = node
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, (ast.If, ast.IfExp)) and child is not parent.test:
                return True
            if parent is f:
                break
            child = parent
        before = [s for s in f.body if isinstance(s, ast.If) and s.lineno < self.syntax.statement_of(node).lineno]
        return any(isinstance(s.body[-1], ast.Return) for s in before)

    # --- what is stored ---------------------------------------------------------------------------------------------

    def _buffer(self, e: ast.AST) -> str | None:
        name = self.origins.attribute(e)
        return name if name in self.buffers else None

    def _stores(self, f: ast.FunctionDef) -> Iterator[_Store]:
        for n in own_nodes(f):
            match n:
                case ast.Assign(targets=targets, value=value):
                    for t, v in (pair for target in targets for pair in pairs(target, value)):
                        yield from self._store(t, v, n, f)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    yield from self._store(target, value, n, f)
                case ast.AugAssign(target=target) if (b := self._buffer(target)) and self._starts_as_list(b):
                    yield _Store(b, n, f, "whole", None)
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr="append"), args=[value])):
                    if (b := self._buffer(base)) is not None:
                        yield _Store(b, n, f, "append", value, "[-1]")
                case ast.Call(func=ast.Attribute(value=base, attr="extend" | "insert" | "setdefault" | "update")):
                    if (b := self._buffer(base)) is not None:
                        yield _Store(b, self.syntax.statement_of(n), f, "whole", None)

    def _store(self, target: ast.expr, value: ast.expr | None, s: ast.stmt, f: ast.FunctionDef) -> Iterator[_Store]:
        if (b := self._buffer(target)) is not None:
            yield _Store(b, s, f, "whole", value)
        elif isinstance(target, ast.Subscript) and (b := self._buffer(target.value)) is not None:
            yield _Store(b, s, f, "item", value, f"[{ast.unparse(target.slice)}]" if _plain(target.slice) else "")

    def _starts_as_list(self, buffer: str) -> bool:
        values = [s.value for s in self.facts.stores.get(buffer, ()) if s.value is not None and s.how == "assign"]
        return any(elements_of(v) is not None for v in values)

    def _is_list(self, buffer: str) -> bool:
        """Whether ``self.buffer[i] = t`` changes a container, and not a tensor."""
        wholes = {self._kind(s.value) for s in self.stores if s.buffer == buffer and s.how == "whole"}
        appended = any(s.buffer == buffer and s.how == "append" for s in self.stores)
        return appended or self._starts_as_list(buffer) or bool(wholes & {_LIST, _EMPTY_LIST})

    # --- what a value is --------------------------------------------------------------------------------------------

    def _kind(self, e: ast.expr | None, depth: int = 0) -> str:
        """What ``e`` gives: one of the kinds above, or "" when that is not known."""
        if e is None or depth > 5:
            return ""
        match e:
            case ast.Constant(value=None):
                return _EMPTY
            case ast.IfExp(body=body, orelse=orelse):
                kinds = {self._kind(body, depth + 1), self._kind(orelse, depth + 1)}
                return kinds.pop() if len(kinds) == 1 else ""
            case ast.NamedExpr(value=value):
                return self._kind(value, depth + 1)
            case ast.Name():
                return self._of_name(e, depth)
            case ast.Dict() | ast.DictComp() | ast.GeneratorExp() | ast.Call(args=[ast.Dict() | ast.DictComp()]):
                return ""  # to go through it gives keys, or uses it up
        inner = elements_of(e)
        if inner is not None:
            kinds = {self._kind(i, depth + 1) for i in inner}
            return _EMPTY_LIST if kinds <= {_EMPTY} else _LIST if kinds == {_TENSOR} else ""
        return self._of_call(e, depth) if isinstance(e, ast.Call) else ""

    def _of_call(self, call: ast.Call, depth: int) -> str:
        if any(k.arg == "out" for k in call.keywords):
            return ""
        what = self.syntax.qualified(call.func)
        if what in _NEW:
            return _TENSOR
        if what in _JOINING and self.syntax.method_of(call) in self.initial:
            return _TENSOR  # elsewhere, what is joined is the cache itself
        if what in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
            return _STATIC
        if not isinstance(call.func, ast.Attribute):
            return ""
        base = call.func.value
        if call.func.attr in _NEW_METHODS:
            return _TENSOR if self._is_tensor(base) else ""
        own = self.origins.own.get(self.origins.attribute(call.func) or "", [])
        if len(own) == 1:
            return self._of_method(own[0], depth)
        if call.func.attr in _KEEPING and (self._is_tensor(base) or self._kind(base, depth + 1) == _TENSOR):
            return _TENSOR
        return ""

    def _is_tensor(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor for sure: a parameter is not asked, a buffer is one that only this class stores."""
        if isinstance(e, ast.Subscript):
            return self._buffer(e.value) is not None and self._is_tensor(e.value)
        if (b := self._buffer(e)) is not None:
            return b not in self.project.foreign_stores
        if isinstance(e, ast.Name):
            found = self.inference.definitions(e)
            given = {d.how for d in found}
            own = [d for d in found if d.how == "iteration" and d.value is not None and self._buffer(d.value)]
            return len(own) == len(found) > 0 or ("parameter" in given and self.inference.of(e).is_tensor)
        return False

    def _of_method(self, f: ast.FunctionDef, depth: int) -> str:
        """What the own method ``f`` returns, when no class below overrides it."""
        returns = [n.value for n in own_nodes(f) if isinstance(n, ast.Return)]
        plain = all(last_name(d) == "staticmethod" for d in f.decorator_list)
        if not returns or not plain or len(self.project.methods(self.qualname, f.name)) > 1:
            return ""
        kinds = {self._kind(r, depth + 1) for r in returns}
        return kinds.pop() if len(kinds) == 1 else ""

    def _of_name(self, name: ast.Name, depth: int) -> str:
        definitions = self.inference.definitions(name)
        if not definitions or any(d.how != "assign" for d in definitions):
            return ""
        parts = [p for d in definitions for p in parts_of(d)]
        kinds = {self._kind(p, depth + 1) if isinstance(p, ast.expr) else "" for p in parts}
        if kinds == {_TENSOR}:
            return _TENSOR
        if len(definitions) == 1 and kinds <= {_LIST, _EMPTY_LIST}:
            return self._filled(name, kinds.pop(), depth)
        return ""

    def _filled(self, name: ast.Name, kind: str, depth: int) -> str:
        """What the local list is where it is stored: nothing happens to it but that new tensors are appended before."""
        function = self.syntax.function_of(name)
        if function is None:
            return ""
        flow = self.inference.flow_of(function)
        if name.id in flow.captured:
            return ""
        for use in flow.uses.get(next(iter(self.inference.definitions(name))), []):
            parent = self.syntax.parents[use]
            call = self.syntax.parents[parent] if isinstance(parent, ast.Attribute) else parent
            match call:
                case ast.Call(func=ast.Attribute(attr="append"), args=[value]) if call is not parent:
                    if use.lineno >= name.lineno or self._kind(value, depth + 1) != _TENSOR:
                        return ""
                    kind = _LIST
                case ast.Call(func=ast.Name(id="len")):
                    pass
                case _ if use is not name:
                    return ""
        return kind

    # --- what stands in the way -------------------------------------------------------------------------------------

    def _unclear(self, marks: Marks) -> str:
        """What makes it unknown where the buffers come from, or what reading one gives."""
        family, unknown = self.project.family(self.qualname)
        summaries = {name: c for name in family if (c := self.project.known_class(name)) is not None}
        methods = frozenset(m for c in summaries.values() for m in c.methods) | set(self.origins.own)
        unknown = {u for u in unknown if u.rpartition(".")[2] != "object"}
        seen = {id(t) for s in self.stores for t in ast.walk(s.statement)}
        for b in sorted(self.buffers - marks.elsewhere):
            above = any(b in c.declared and name != self.qualname for name, c in summaries.items())
            descriptor = any(map(_may_be_descriptor, self.facts.stores.get(b, ())))
            if b in methods or methods & {"__setattr__", "__getattribute__"} or unknown or above or descriptor:
                return f"what reading `{b}` gives is up to other code (a property, `__setattr__` or a base class)"
            if not any(s.buffer == b for s in self.stores):
                return f"where `{b}` is made is not known"
            for n in ast.walk(self.cache.cls):
                loose = isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and self._buffer(n) == b
                named = isinstance(n, ast.Call) and last_name(n.func).strip("_") in ("setattr", "delattr")
                if (loose and id(n) not in seen) or (named and _may_name(n, b)):
                    return f"`{b}` is also stored in a way that is not understood"
        texts = {n.value for n in self.syntax.by_type[ast.Constant] if isinstance(n, ast.Constant)}
        if {"freezing", "prepare_freezing"} & (self.project.foreign_stores | {t for t in texts if isinstance(t, str)}):
            return "`freezing` is set somewhere, and makes constants of marked tensors"
        return ""

    def _why_not(self, s: _Store, kind: str) -> str:
        name = f"`{s.buffer}`"
        if kind not in ((_TENSOR, _LIST) if s.how == "whole" else (_TENSOR,)):
            if s.value is not None and self._is_given(s.value):
                return f"{name} comes from outside of the class"
            if isinstance(s.value, (ast.Dict, ast.DictComp)) or s.value is None:
                return f"how {name} is filled is not understood"
            if s.method not in self.initial:
                return f"{name} is replaced in `{s.method.name}`: its address is not constant"
            return f"`{ast.unparse(s.value)}` is not known to be a new tensor"
        bound = [n for n in ast.walk(s.statement) if isinstance(n, (ast.Name, ast.Attribute))]
        if s.how == "item" and (not s.item or any(isinstance(n.ctx, ast.Store) for n in bound)):
            return f"the place in {name} is computed in a way that may not be repeated"
        wholes = [o.value for o in self.stores if o.buffer == s.buffer and o.how == "whole"]
        if s.how == "item" and any(isinstance(v, (ast.Dict, ast.DictComp)) for v in wholes):
            return f"{name} is a dict"
        if s.how == "append" and {"", _STATIC} & {self._kind(o.value) for o in self.stores if o.buffer == s.buffer}:
            return f"how {name} is filled is not understood"
        if s.method in self._always_in_graphs and not self._conditional(s.statement, s.method):
            return f"{name} is made anew in `{s.method.name}`, which compiled code may call"
        return ""


def _plain(e: ast.expr) -> bool:
    """Whether reading ``e`` again gives the same and does nothing."""
    return all(isinstance(n, _PLAIN) for n in ast.walk(e))


def _may_be_descriptor(store: Store) -> bool:
    """Whether the class itself holds, under the attribute's name, an object that may decide what reading it gives."""
    value = store.value if store.how == "declared" else None
    field = isinstance(value, ast.Call) and last_name(value.func) == "field"
    return value is not None and not isinstance(value, ast.Constant) and not field


def _may_name(call: ast.AST, attribute: str) -> bool:
    """Whether ``call`` names ``attribute``, or an attribute that only running it tells."""
    assert isinstance(call, ast.Call)
    name = next((a for a in call.args[1 if len(call.args) < 3 else -2 :]), None)
    return not isinstance(name, ast.Constant) or name.value == attribute
