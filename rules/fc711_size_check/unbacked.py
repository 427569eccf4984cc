"""Numbers that the data of a tensor gives: symbols without a value where a setting takes them into a graph."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import last_name
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind
from patcher.facts.zones.host_reads import HostReads

SCALARS = frozenset({"capture_scalar_outputs"})
SHAPES = frozenset({"capture_dynamic_output_shape_ops"})
_NONE: frozenset[str] = frozenset()
#: Functions and methods whose result has as many elements as the data says.
_SIZED = frozenset("nonzero argwhere where unique unique_consecutive masked_select repeat_interleave bincount".split())
#: Builtins that give a number, or as good as that, of numbers.
_OF_NUMBERS = frozenset("len int float bool abs round min max sum sorted list tuple reversed".split())


class Unbacked(Analysis):
    """Which numbers of one function are such symbols."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.reads = facts.ask(HostReads)
        self._open: set[Definition] = set()

    def needs(self, e: ast.expr) -> frozenset[str]:
        """The settings with all of which ``e`` is made of symbols; none: it has a value. Of a tensor: its sizes are."""
        match e:
            case ast.Name():
                return self._named(e)
            case ast.Call():
                return self._called(e)
            case ast.Attribute():
                return self.needs(e.value) if e.attr == "shape" else _NONE
            case ast.Subscript(value=held, slice=index) if self.inference.of(e).kind is not Kind.PYTHON:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return SHAPES if any(self.inference.of(p).is_boolean for p in parts) else self._any((held, *parts))
        return self._any(n for n in ast.iter_child_nodes(e) if isinstance(n, ast.expr))

    def is_flag(self, e: ast.expr) -> bool:
        """Whether ``e`` is True or False for sure, or a symbol for one."""
        match e:
            case ast.Name():
                values = [d.value for d in self.inference.definitions(e) if d.how == "assign" and not d.path]
                return bool(values) and all(isinstance(v, ast.Call) and self.is_flag(v) for v in values)
            case ast.Call(func=ast.Attribute(value=held, attr="item"), args=[], keywords=[]):
                return self.inference.of(held).is_boolean
        return isinstance(e, ast.Call) and self.syntax.builtin(e) == "bool"

    def _called(self, call: ast.Call) -> frozenset[str]:
        name, builtin, args = last_name(call.func), self.syntax.builtin(call), call.args
        held = call.func.value if isinstance(call.func, ast.Attribute) else None
        tensors = [a for a in args if self.inference.of(a).is_tensor]
        if held is not None and name in ("item", "tolist") and not args:
            known = self.reads.is_read(call) or self.inference.of(held).is_tensor
            return self.needs(held) | SCALARS if known and name == "tolist" else SCALARS if known else _NONE
        if builtin in ("int", "float", "bool") and tensors:
            return SCALARS
        if name in _SIZED and self.reads.is_read(call):
            return SHAPES
        if builtin in _OF_NUMBERS:
            return self._any(args)
        if held is None or name in api.REDUCTIONS:
            return _NONE
        return self._any(args) | (_NONE if self.syntax.qualified(call.func) else self.needs(held))

    def _named(self, name: ast.Name) -> frozenset[str]:
        """What the definitions of ``name`` need; nothing where they lead back to it."""
        found = _NONE
        for d in self.inference.definitions(name):
            value, path = d.part
            rows = value is not None and (bool(path) or d.how == "iteration") and self.inference.of(value).is_tensor
            if value is not None and d.how in ("assign", "iteration") and d not in self._open and not rows:
                self._open.add(d)
                found |= self.needs(value)
                self._open.discard(d)
        return found

    def _any(self, parts: Iterable[ast.expr]) -> frozenset[str]:
        return frozenset().union(*map(self.needs, parts))
