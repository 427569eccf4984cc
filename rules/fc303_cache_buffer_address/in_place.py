"""Which attributes the methods of one plain class write in place, as tensors, where compiled code may run them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import parts_of
from patcher.facts.syntax.tree import own_nodes
from patcher.facts.tables import torch_api as api
from rules.fc303_cache_buffer_address.new_tensors import LIST, TENSOR, NewTensors
from rules.fc303_cache_buffer_address.running import Running

#: Methods that end in "_" and write no element.
_NO_WRITE = frozenset({"requires_grad_", "detach_", "share_memory_", "retain_grad_"})


@dataclass(frozen=True, eq=False)
class _Write:
    """A write into ``name``, or, with ``part``, into something that is read out of it.

    ``sure``: that only tensors are written so. ``dimensions``: how many the written tensor has at least. ``constant``:
    that the same is written at each call.
    """

    name: str
    part: bool
    sure: bool
    dimensions: int
    constant: bool


class InPlace(Analysis):
    """One class. ``buffers``: the attributes that are known to be its buffers."""

    def __init__(self, running: Running, new: NewTensors, buffers: frozenset[str]) -> None:
        super().__init__(running.facts)
        self.running = running
        self.new = new
        self.buffers = buffers
        self.origins = running.origins
        self.parents = self.syntax.parents

    def written(self) -> frozenset[str]:
        """The attributes that are written and look like tensors."""
        found = [w for f in self.running.compiled for w in self._writes(f) if self._into_tensor(w)]
        return frozenset(w.name for w in found)

    def keeps_rows(self) -> bool:
        """Whether what varies is written, in compiled code, into tensors of two dimensions or more."""
        for f in self.running.compiled:
            for w in self._writes(f):
                if not w.constant and self._into_tensor(w) and max(w.dimensions, self._made_with(w.name)) >= 2:
                    return True
        return False

    def _into_tensor(self, w: _Write) -> bool:
        values = [s.value for s in self.origins.members.stores.get(w.name, ()) if s.method is not None]
        if w.name in self.buffers or TENSOR in map(self.new.kind, values):
            return True
        if w.part and TENSOR in map(self.new.kind, self._elements(w.name)):
            return True
        return w.sure and any(map(self._seems_tensor, values))

    def _writes(self, f: ast.FunctionDef) -> Iterator[_Write]:
        for n in own_nodes(f):
            dimensions, constant, sure = 0, False, True
            match n:
                case ast.Subscript(value=value, slice=place, ctx=ast.Store()):
                    dimensions = _indexed(n)
                    sure = isinstance(place, ast.Tuple)
                    parent = self.parents[n]
                    constant = isinstance(parent, ast.Assign) and _is_constant(parent.value)
                case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr.endswith("_"):
                    if attr.endswith("__") or attr in _NO_WRITE:
                        continue
                    dimensions = _indexed(value)
                    match n.args:
                        case [ast.Constant(value=int(dim)), _, *_] if attr.startswith(("index_", "scatter_")):
                            dimensions = dim + 1
                    constant = attr in ("zero_", "fill_") and all(map(_is_constant, n.args))
                case ast.AugAssign(target=ast.Attribute() as value):
                    sure = False
                case _:
                    continue
            name = self._root(value)
            if name is not None:
                yield _Write(name, self.origins.attribute(value) is None, sure, dimensions, constant)

    def _elements(self, name: str) -> Iterator[ast.expr]:
        """What is put into the list or dict ``self.name``, one by one."""
        yield from (value for _, value in self.origins.members.appended.get(name, ()))
        for n in (n for f in self.running.methods for n in own_nodes(f)):
            match n:
                case ast.Assign(targets=[ast.Subscript(value=base)], value=value):
                    if self.origins.attribute(base) == name:
                        yield value

    def _seems_tensor(self, e: ast.expr | None) -> bool:
        """Whether ``e``, into which something is written as into a tensor, may be one."""
        return e is not None and (self.new.is_given(e) or self.new.kind(e) == LIST or self.inference.of(e).is_tensor)

    def _root(self, e: ast.expr, depth: int = 0) -> str | None:
        """``x`` when ``e`` is ``self.x``, a part of it, or a local name of one."""
        while isinstance(e, ast.Subscript) or (isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute)):
            if isinstance(e, ast.Call) and self.running.cache is None and not _gives_view(e):
                return None  # a copy, or anything
            e = e.value if isinstance(e, ast.Subscript) else e.func.value  # type: ignore[attr-defined]
        if isinstance(e, ast.Name) and depth < 4:
            parts = [p for d in self.inference.definitions(e) for p in parts_of(d) if d.how in ("assign", "iteration")]
            return self._root(parts[0], depth + 1) if len(parts) == 1 and isinstance(parts[0], ast.expr) else None
        return self.origins.attribute(e)

    def _made_with(self, name: str) -> int:
        """The least number of dimensions of the tensors that are kept in ``name``, as far as it is known."""
        kept = [s.value for s in self.origins.members.stores.get(name, ()) if s.method is not None]
        if TENSOR not in map(self.new.kind, kept):  # else `self.x[i] = value` puts rows into it
            kept += self._elements(name)
        ranks = [self.origins.rank(v) for v in kept if v is not None]
        return min((r for r in ranks if r is not None), default=0)


def _gives_view(call: ast.Call) -> bool:
    """Whether ``call``, of a method, gives a view of a tensor, or the tensor itself."""
    assert isinstance(call.func, ast.Attribute)
    attr = call.func.attr
    return attr in api.ALIASING | {"get", "view_as_real"} or (attr.endswith("_") and not attr.endswith("__"))


def _is_constant(e: ast.expr) -> bool:
    return isinstance(e.operand if isinstance(e, ast.UnaryOp) else e, ast.Constant)


def _indexed(e: ast.expr) -> int:
    """How many dimensions the tensor has at least of which ``e`` is a part, if it is one."""
    if not isinstance(e, ast.Subscript):
        return 0
    parts = e.slice.elts if isinstance(e.slice, ast.Tuple) else [e.slice]
    return sum(1 for p in parts if not (isinstance(p, ast.Constant) and (p.value is None or p.value is ...)))
