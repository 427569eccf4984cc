"""Where a class makes the tensors that compiled code writes in place, and which of them are marked for CUDA graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.caching.caches import Cache, Caches
from patcher.facts.caching.origins import Origins, elements_of, parts_of
from patcher.facts.syntax.classes import Store, pairs, self_name
from patcher.facts.syntax.tree import last_name, own_nodes
from rules.fc303_cache_buffer_address.marks import Marks
from rules.fc303_cache_buffer_address.new_tensors import EMPTY, EMPTY_LIST, LIST, STATIC, TENSOR, NewTensors
from rules.fc303_cache_buffer_address.running import Running

_PLAIN = (ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


@dataclass(frozen=True, eq=False)
class Allocation:
    """``statement`` puts a new tensor at ``place`` (source text), or, with ``each``, a list of them."""

    statement: ast.stmt
    buffer: str
    place: str
    each: bool


@dataclass(frozen=True, eq=False)
class Allocations:
    """The allocations of a class's buffers that are not marked, in order, or the ``reason`` why not all are known."""

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


def allocations_of(facts: Facts, cls: ast.ClassDef) -> Allocations | None:
    """Where ``cls``, a cache, makes buffers that compiled code writes in place and that nobody marks."""
    cache = facts.ask(Caches).of(cls)
    if cache is None or facts.is_module_class(cls):  # Dynamo marks what it reaches through a module
        return None
    return _Allocating(facts, cls, cache).found()


class _Allocating(ClassAnalysis):
    """One class, read with the question where its buffers come from."""

    def __init__(self, facts: Facts, cls: ast.ClassDef, cache: Cache) -> None:
        super().__init__(facts, cls)
        self.cache = cache
        self.origins = Origins(facts, cls)
        self.methods = self.origins.methods
        self.running = Running(self.origins, cache)
        self.new = NewTensors(self.origins, self.running.initial, cache.buffers)
        self.written = frozenset(w for f in self.running.compiled for n in own_nodes(f) if (w := self._written(n)))
        self.buffers = cache.buffers | self.written
        self.new = NewTensors(self.origins, self.running.initial, self.buffers)
        self.stores = [s for f in self.methods for s in self._stores(f)]

    def found(self) -> Allocations | None:
        if not self._asked():
            return None
        marks = Marks(self.origins, self.buffers)
        given = [(s.buffer, s.method, s.value) for s in self.stores]
        stores = [s for s in self.stores if not marks.at(s.method, s.buffer, given)]
        made: list[Allocation] = []
        reason = self._unclear(marks)
        at: ast.AST = self.cls
        for s in stores:
            kind = self.new.kind(s.value)
            if s.how == "item" and not self._is_list(s.buffer):
                continue  # a write into the tensor itself
            if kind in (EMPTY, EMPTY_LIST, STATIC) and s.how != "append":
                continue
            why = self._why_not(s, kind)
            if why and not reason:
                reason, at = why, s.statement
            place = f"{self_name(s.method)}.{s.buffer}{s.item}"
            made.append(Allocation(s.statement, s.buffer, place, kind == LIST))
        if not made and (not reason or marks.inside or marks.elsewhere):
            return None  # all are marked
        buffers = tuple(sorted({a.buffer for a in made} or self.buffers))
        node = at if reason else made[0].statement
        return Allocations(buffers, tuple(made), node, reason)

    # --- does the question arise ------------------------------------------------------------------------------------

    def _asked(self) -> bool:
        """Whether compiled code writes the cache's buffers, at numbers that it does not read out of tensors."""
        if self.cache.foreign is not None or (
            self._index_is_tensor(self.cache) and not self._stays_on_device(self.cache)
        ):
            return False
        return bool(self.cache.buffers & self.written)

    def _written(self, n: ast.AST) -> str | None:
        """The attribute whose tensor, or one of whose tensors, ``n`` writes in place."""
        match n:
            case ast.Subscript(value=of, ctx=ast.Store()):
                name = self._root(of)
            case ast.Call(func=ast.Attribute(value=of, attr=attr)) if attr.endswith("_") and not attr.endswith("__"):
                name = self._root(of)
            case ast.AugAssign(target=ast.Attribute() as of):
                name = self.origins.attribute(of)
            case _:
                return None
        made = [s.value for s in self.members.stores.get(name or "", ()) if s.method is not None]
        known = name in self.cache.buffers or {TENSOR, LIST} & set(map(self.new.kind, made))
        return name if known else None

    def _root(self, e: ast.expr, depth: int = 0) -> str | None:
        """``x`` when ``e`` is ``self.x``, a part of it, or a local name of one."""
        while isinstance(e, ast.Subscript) or (isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute)):
            e = e.value if isinstance(e, ast.Subscript) else e.func.value  # type: ignore[attr-defined]
        if isinstance(e, ast.Name) and depth < 4:
            parts = [p for d in self.inference.definitions(e) for p in parts_of(d) if d.how in ("assign", "iteration")]
            return self._root(parts[0], depth + 1) if len(parts) == 1 and isinstance(parts[0], ast.expr) else None
        return self.origins.attribute(e)

    def _stays_on_device(self, cache: Cache) -> bool:
        """Whether compiled code is known to call the ``cache``, and no method that reads its index on the host."""
        called = [m for m in cache.methods if self.running.called(m.function)]
        # `if memory:` calls a special method, and names none
        special = [m for m in cache.methods if m.function.name.startswith("__")]
        return bool(called) and not any(m.host_reads for m in (*called, *special))

    def _index_is_tensor(self, cache: Cache) -> bool:
        index = cache.index
        values = [s.value for name in index for s in self.members.stores.get(name, ()) if s.value is not None]
        values += [value for name in index for _, value in self.members.appended.get(name, ())]
        return any(map(self._may_be_tensor, values)) or any(m.host_reads for m in cache.methods)

    def _may_be_tensor(self, e: ast.expr) -> bool:
        inner = elements_of(e)
        return any(map(self._may_be_tensor, inner)) if inner is not None else self.inference.of(e).is_tensor

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
        values = [s.value for s in self.members.stores.get(buffer, ()) if s.value is not None and s.how == "assign"]
        return any(elements_of(v) is not None for v in values)

    def _is_list(self, buffer: str) -> bool:
        """Whether ``self.buffer[i] = t`` changes a container, and not a tensor."""
        wholes = {self.new.kind(s.value) for s in self.stores if s.buffer == buffer and s.how == "whole"}
        appended = any(s.buffer == buffer and s.how == "append" for s in self.stores)
        return appended or self._starts_as_list(buffer) or bool(wholes & {LIST, EMPTY_LIST})

    # --- what stands in the way -------------------------------------------------------------------------------------

    def _unclear(self, marks: Marks) -> str:
        """What makes it unknown where the buffers come from, or what reading one gives."""
        family, unknown = self.project.family(self.name)
        summaries = {name: c for name in family if (c := self.project.known_class(name)) is not None}
        methods = frozenset(m for c in summaries.values() for m in c.methods) | set(self.origins.own)
        unknown = frozenset(u for u in unknown if u.rpartition(".")[2] != "object")
        seen = {id(t) for s in self.stores for t in ast.walk(s.statement)}
        for b in sorted(self.buffers - marks.elsewhere):
            above = any(b in c.declared and name != self.name for name, c in summaries.items())
            descriptor = any(map(_may_be_descriptor, self.members.stores.get(b, ())))
            if b in methods or methods & {"__setattr__", "__getattribute__"} or unknown or above or descriptor:
                return f"what reading `{b}` gives is up to other code (a property, `__setattr__` or a base class)"
            if not any(s.buffer == b for s in self.stores):
                return f"where `{b}` is made is not known"
            for n in ast.walk(self.cls):
                loose = isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and self._buffer(n) == b
                loose = loose and not isinstance(self.syntax.parents[n], ast.AugAssign)  # adds to the tensor itself
                named = isinstance(n, ast.Call) and last_name(n.func).strip("_") in ("setattr", "delattr")
                if (loose and id(n) not in seen) or (named and _may_name(n, b)):
                    return f"`{b}` is also stored in a way that is not understood"
        texts = {n.value for n in self.syntax.by_type[ast.Constant]}
        if {"freezing", "prepare_freezing"} & (self.project.foreign_stores | {t for t in texts if isinstance(t, str)}):
            return "`freezing` is set somewhere, and makes constants of marked tensors"
        return ""

    def _why_not(self, s: _Store, kind: str) -> str:
        name = f"`{s.buffer}`"
        if kind not in ((TENSOR, LIST) if s.how == "whole" else (TENSOR,)):
            if s.value is not None and self.new.is_given(s.value):
                return f"{name} comes from outside of the class"
            if isinstance(s.value, (ast.Dict, ast.DictComp)) or s.value is None:
                return f"how {name} is filled is not understood"
            if s.method not in self.running.initial:
                return f"{name} is replaced in `{s.method.name}`: its address is not constant"
            return f"`{ast.unparse(s.value)}` is not known to be a new tensor"
        bound = [n for n in ast.walk(s.statement) if isinstance(n, (ast.Name, ast.Attribute))]
        if s.how == "item" and (not s.item or any(isinstance(n.ctx, ast.Store) for n in bound)):
            return f"the place in {name} is computed in a way that may not be repeated"
        wholes = [o.value for o in self.stores if o.buffer == s.buffer and o.how == "whole"]
        if s.how == "item" and any(isinstance(v, ast.DictComp) or (isinstance(v, ast.Dict) and v.keys) for v in wholes):
            return f"{name} is a dict"
        if s.how == "append" and {"", STATIC} & {self.new.kind(o.value) for o in self.stores if o.buffer == s.buffer}:
            return f"how {name} is filled is not understood"
        if s.method in self.running.always and not self.running.conditional(s.statement, s.method):
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
