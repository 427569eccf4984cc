"""Where a cache class makes the tensors that compiled code writes in place, when nobody marks them for CUDA graphs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import ClassAnalysis
from patcher.facts.caching.caches import Cache, Caches
from patcher.facts.caching.origins import Origins, elements_of
from patcher.facts.syntax.classes import pairs, self_name
from patcher.facts.syntax.tree import last_name, own_nodes

_MARK = "mark_static_address"
_NEW = frozenset(
    f"torch.{name}" for name in "zeros ones empty full zeros_like ones_like empty_like full_like rand randn".split()
)
_OTHER_WAYS = frozenset("__setattr__ __getattribute__ setattr delattr".split())


@dataclass(frozen=True, eq=False)
class Allocation:
    """``statement`` puts a new tensor at ``place`` (source text), or, with ``each``, a list of them."""

    statement: ast.stmt
    buffer: str
    place: str
    each: bool


def allocations_of(facts: Facts, cls: ast.ClassDef) -> list[Allocation]:
    """Where ``cls``, a cache, makes its buffers; empty where one comes from elsewhere, or is marked already."""
    cache = facts.ask(Caches).of(cls)
    if cache is None or facts.is_module_class(cls):  # Dynamo marks what it reaches through a module
        return []
    return list(_Allocating(facts, cls, cache).found())


class _Allocating(ClassAnalysis):
    def __init__(self, facts: Facts, cls: ast.ClassDef, cache: Cache) -> None:
        super().__init__(facts, cls)
        self.cache = cache
        self.origins = Origins(facts, cls)
        self._resets = {m.function for m in cache.methods if m.only_resets}

    def found(self) -> Iterator[Allocation]:
        makers = self.origins.initial | self._resets
        made = [a for f in self.origins.methods if f in makers for n in own_nodes(f) for a in self._allocations(n, f)]
        if self._is_asked() and not self._may_be_other(made):
            yield from (a for a in made if a.place)

    def _is_asked(self) -> bool:
        """Whether compiled code writes the buffers, at numbers that it does not read out of tensors."""
        if self.cache.foreign is not None or any(m.host_reads for m in self.cache.methods):
            return False
        values = [
            s.value for name in self.cache.index for s in self.members.stores.get(name, ()) if s.value is not None
        ]
        values += [value for name in self.cache.index for _, value in self.members.appended.get(name, ())]
        if any(self.inference.of(e).is_tensor for v in values for e in (elements_of(v) or [v])):
            return False
        eager = self._resets | self.origins.initial
        compiled = (f for f in self.origins.methods if f not in eager and not self.facts.is_disabled(f))
        return any(self._writes(n) for f in compiled for n in own_nodes(f))

    def _writes(self, n: ast.AST) -> bool:
        match n:
            case ast.Subscript(value=of, ctx=ast.Store()):
                return not self.origins.of(of).isdisjoint(self.cache.buffers)
            case ast.Call(func=ast.Attribute(value=of, attr=attr)) if attr.endswith("_") and not attr.endswith("__"):
                return not self.origins.of(of).isdisjoint(self.cache.buffers)
        return False

    def _allocations(self, n: ast.AST, f: ast.FunctionDef) -> Iterator[Allocation]:
        """What ``n`` stores in buffers, without a ``place`` for None and empty lists; nothing for what is not known."""
        match n:
            case ast.Assign(targets=targets, value=value):
                given = [pair for t in targets for pair in pairs(t, value)]
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                given = [(target, value)]
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=base, attr="append"), args=[value])):
                name = self.origins.attribute(base)
                if name in self.cache.buffers and self._is_new(value):
                    yield Allocation(n, name or "", f"{self_name(f)}.{name}[-1]", each=False)
                return
            case _:
                return
        for at, one in given:
            name = self.origins.attribute(at)
            if name not in self.cache.buffers or one is None:
                continue
            inner = elements_of(one) if isinstance(one, (ast.List, ast.ListComp, ast.BinOp)) else None
            if self._is_new(one) or (inner and all(map(self._is_new, inner))):
                yield Allocation(n, name or "", f"{self_name(f)}.{name}", each=bool(inner))
            elif inner == [] or (isinstance(one, ast.Constant) and one.value is None):
                yield Allocation(n, name or "", "", each=False)

    def _is_new(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor that was just made."""
        if isinstance(e, ast.Name):
            found = self.inference.definitions(e)
            return bool(found) and all(
                d.how == "assign" and not d.path and d.value and self._is_new(d.value) for d in found
            )
        if not isinstance(e, ast.Call) or any(k.arg == "out" for k in e.keywords):
            return False
        what = self.syntax.qualified(e.func) or ""
        return what in _NEW and what.rpartition(".")[2] not in self.project.foreign_stores

    def _may_be_other(self, made: list[Allocation]) -> bool:
        """Whether a buffer is marked already, may come from elsewhere, or reading it may give something else."""
        family, unknown = self.project.family(self.name)
        said = {n.value for n in self.syntax.by_type[ast.Constant]} | self.syntax.names_in(self.syntax.tree)
        marked = _MARK in said or bool(self.project.mentions(_MARK))
        inherits = len(family) > 1 or any(u.rpartition(".")[2] != "object" for u in unknown)
        own_ways = not self.syntax.names_in(self.cls).isdisjoint(_OTHER_WAYS)
        if marked or inherits or own_ways or "freezing" in self.project.foreign_stores | said:
            return True
        buffers, seen = self.cache.buffers, {a.statement for a in made}
        for n in ast.walk(self.cls):
            match n:
                case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()) if name in buffers:
                    pass
                case ast.Call(func=ast.Attribute(value=of, attr="append" | "extend" | "insert" | "update")) if (
                    self.origins.attribute(of) in buffers
                ):
                    pass
                case _:
                    continue
            if self.syntax.statement_of(n) not in seen:
                return True
        declared = (s for b in buffers for s in self.members.stores.get(b, ()) if s.how == "declared" and s.value)
        descriptor = any(isinstance(s.value, ast.Call) and last_name(s.value.func) != "field" for s in declared)
        return descriptor or bool(buffers & {*self.origins.own}) or {a.buffer for a in made if a.place} != buffers
