"""Numbers that the data of a tensor gives: symbols without a value where a setting takes them into a graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind
from patcher.facts.zones.host_reads import HostReads

SCALARS = frozenset({"capture_scalar_outputs"})
SHAPES = frozenset({"capture_dynamic_output_shape_ops"})
_NONE: frozenset[str] = frozenset()
#: Functions and methods whose result has as many elements as the data says.
_SIZED = frozenset("nonzero argwhere where unique unique_consecutive masked_select repeat_interleave bincount".split())
#: Builtins that give a number, or as good as that, of numbers.
_OF_NUMBERS = frozenset("int float bool abs round min max sum sorted list tuple reversed".split())
_LENGTHS = frozenset({"size", "numel", "nelement"})


class Unbacked(Analysis):
    """Which numbers of one function are such symbols."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.reads = facts.ask(HostReads)
        self._open: set[Definition] = set()

    def needs(self, e: ast.expr) -> frozenset[str]:
        """The settings with all of which the number, shape or list ``e`` is made of symbols; none: it has a value.

        What is tested or compared is what its parts are.
        """
        match e:
            case ast.Name():
                return self._defined(e, self._bound)
            case ast.Call():
                return self._called(e)
            case ast.Attribute(value=held, attr="shape"):
                return self.sized(held)
            case ast.Subscript(value=held, slice=index):
                return _NONE if self.inference.of(e).is_tensor else self.needs(held) | self.needs(index)
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.BoolOp() | ast.Tuple() | ast.List():
                return self._any(n for n in ast.iter_child_nodes(e) if isinstance(n, ast.expr))
            case ast.IfExp(body=body, orelse=orelse):
                return self._any((body, orelse))
        return _NONE

    def is_flag(self, e: ast.expr) -> bool:
        """Whether ``e`` is True or False for sure, or a symbol for one."""
        match e:
            case ast.Name():
                found = self.inference.definitions(e)
                values = [d.value for d in found if d.how == "assign" and not d.path]
                calls = [v for v in values if isinstance(v, ast.Call) and self.is_flag(v)]
                return bool(found) and len(calls) == len(found)
            case ast.Call(func=ast.Attribute(value=held, attr="item"), args=[], keywords=[]):
                return self.inference.of(held).is_boolean
            case ast.Call(args=[_], keywords=[]):
                return self.syntax.builtin(e) == "bool"
        return False

    def _called(self, call: ast.Call) -> frozenset[str]:
        if isinstance(call.func, ast.Attribute):
            name, held = call.func.attr, call.func.value
            if name in ("item", "tolist") and not call.args:
                if name == "tolist" and (sized := self.sized(held)):
                    return sized | SCALARS
                return SCALARS if self.reads.is_read(call) or self.inference.of(held).is_tensor else _NONE
            return self.sized(held) if name in _LENGTHS else _NONE
        name = self.syntax.builtin(call)
        if name == "len" and len(call.args) == 1:
            return self.sized(call.args[0])
        if name not in _OF_NUMBERS:
            return _NONE
        if name in ("int", "float", "bool") and any(self.inference.of(a).is_tensor for a in call.args):
            return SCALARS
        return self._any(call.args)

    def _bound(self, d: Definition) -> frozenset[str]:
        """Of what ``d`` binds to a name."""
        value, path = d.value, d.path
        if value is None or d.how not in ("assign", "iteration"):
            return _NONE
        if d.how == "assign" and isinstance(value, (ast.Tuple, ast.List)):
            inside = path[0] if len(path) == 1 else None
            return self.needs(value.elts[inside]) if inside is not None and inside < len(value.elts) else _NONE
        if self.inference.of(value).is_tensor and not (d.how == "assign" and not path):
            return _NONE  # rows of it
        return self.needs(value)

    def sized(self, e: ast.expr) -> frozenset[str]:
        """The settings with which a size of the tensor ``e``, or of its list, is a symbol."""
        match e:
            case ast.Name():
                return self._defined(e, self._bound_tensor)
            case ast.Call(func=func, args=args) if self.reads.is_read(e) and _last(func) in _SIZED:
                return SHAPES
            case ast.Call(func=func, args=args):
                torch = (self.syntax.qualified(func) or "").startswith("torch.")
                if _last(func) in api.REDUCTIONS or not (torch or isinstance(func, ast.Attribute)):
                    return _NONE
                inner = self.sized(func.value) if isinstance(func, ast.Attribute) and not torch else _NONE
                return inner.union(*(self.sized(a) if self.inference.of(a).is_tensor else self.needs(a) for a in args))
            case ast.Subscript(value=held, slice=index) if self.inference.of(e).kind is not Kind.PYTHON:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                if any(self.inference.of(p).is_boolean for p in parts):
                    return SHAPES
                ends = [n for p in parts if isinstance(p, ast.Slice) for n in (p.lower, p.upper) if n is not None]
                return self.sized(held) | self._any(ends)
            case ast.BinOp(left=left, right=right):
                return self.sized(left) | self.sized(right)
        return _NONE

    def _bound_tensor(self, d: Definition) -> frozenset[str]:
        if d.value is None or d.how != "assign":
            return _NONE
        if isinstance(d.value, (ast.Tuple, ast.List)):
            at = d.path[0] if len(d.path) == 1 else len(d.value.elts)
            return self.sized(d.value.elts[at]) if at < len(d.value.elts) else _NONE
        return self.sized(d.value)

    def _any(self, parts: Iterable[ast.expr]) -> frozenset[str]:
        return frozenset().union(*map(self.needs, parts))

    def _defined(self, name: ast.Name, asked: Callable[[Definition], frozenset[str]]) -> frozenset[str]:
        """``asked`` of what binds ``name``; nothing where the definitions lead back to it."""
        found = _NONE
        for d in self.inference.definitions(name):
            if d not in self._open:
                self._open.add(d)
                found |= asked(d)
                self._open.discard(d)
        return found


def _last(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else ""
