"""Numbers that the data of a tensor gives: symbols without a value where a setting takes them into a graph."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from math import isfinite
from typing import TypeVar

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.running.callers import Callers
from patcher.facts.syntax.tree import FunctionNode, own_nodes
from patcher.facts.syntax.written import all_parameters
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.certainty import Certainty
from patcher.facts.values.sizes import Sizes
from patcher.facts.values.types import Category, Kind
from patcher.facts.zones.host_reads import HostReads

T = TypeVar("T")

SCALARS = frozenset({"capture_scalar_outputs"})
SHAPES = frozenset({"capture_dynamic_output_shape_ops"})
_NONE: frozenset[str] = frozenset()
#: Functions and methods whose result has as many elements as the data says.
_SIZED = frozenset("nonzero argwhere where unique unique_consecutive masked_select repeat_interleave bincount".split())
#: Builtins that give a number, or as good as that, of numbers.
_OF_NUMBERS = frozenset("int float bool abs round min max sum sorted list tuple reversed".split())
#: Builtins that give an integer when all that they are given are integers.
_WHOLE = frozenset("abs min max sum".split())
_WHOLE_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_LENGTHS = frozenset({"size", "numel", "nelement"})


class Unbacked(Analysis):
    """Which numbers of one module are such symbols, and which of them are integers."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.reads = facts.ask(HostReads)
        self.sizes = facts.ask(Sizes)
        self.certainty = facts.ask(Certainty)
        self.callers = facts.ask(Callers)
        self.callees = facts.ask(Callees)
        self._open: set[Definition | FunctionNode] = set()

    def needs(self, e: ast.expr) -> frozenset[str]:
        """The settings with all of which the number, shape or list ``e`` is made of symbols; none: it has a value.

        What is tested or compared is what its parts are.
        """
        match e:
            case ast.Name():
                return self._defined(e, self._bound, self.needs)
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

    def is_whole(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python integer for sure, or a symbol for one: no NaN, and no tensor."""
        match e:
            case ast.Name():
                if self.sizes.is_integer(e):
                    return True
                found = self.inference.definitions(e)
                return bool(found) and all(
                    self._closed(d, lambda d: self._binds_whole(d) or self._is_handed_whole(e, d), False) for d in found
                )
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _WHOLE_ARITHMETIC):
                return self.is_whole(left) and self.is_whole(right)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.is_whole(operand)
            case ast.Call(func=ast.Attribute(value=held, attr="item"), args=[], keywords=[]):
                return self._holds_integers(held)
            case ast.Call(args=args, keywords=[]) if name := self.syntax.builtin(e):
                if name in ("int", "len"):
                    return len(args) == 1
                return name in _WHOLE and bool(args) and all(self._lists_whole(a) or self.is_whole(a) for a in args)
            case ast.Subscript(value=held, slice=index) if not isinstance(index, ast.Slice):
                return self._lists_whole(held) or self.sizes.is_size(e)
        return self.sizes.is_integer(e)

    def is_finite(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number for sure, and no NaN: an integer, one of the code, or a parameter's default."""
        if self.is_whole(e):
            return True
        value = self.inference.of(e)
        if not value.is_number or value.data or not self.certainty.is_number(e):
            return False
        if isinstance(e, ast.Name):
            found = self.inference.definitions(e)
            return bool(found) and all(d.how == "parameter" for d in found)
        return isinstance(value.constant, float) and isfinite(value.constant)

    def is_flag(self, e: ast.expr) -> bool:
        """Whether ``e`` is True or False for sure, or a symbol for one."""
        match e:
            case ast.Name():
                found = self.inference.definitions(e)
                return bool(found) and all(self._closed(d, self._binds_flag, False) for d in found)
            case ast.Call(func=ast.Attribute(value=held, attr="item"), args=[], keywords=[]):
                return self.inference.of(held).is_boolean
            case ast.Call(args=[_], keywords=[]):
                return self.syntax.builtin(e) == "bool"
        return False

    def is_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number of Python's, or a symbol for one, for sure: compared with another, it is a bool."""
        if self.is_whole(e):
            return True
        value = self.inference.of(e)
        read = isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr == "item"
        return value.is_number and (read or self.certainty.is_number(e))

    # --- numbers ----------------------------------------------------------------------------------------------------

    def _called(self, call: ast.Call) -> frozenset[str]:
        if isinstance(call.func, ast.Attribute):
            name, held = call.func.attr, call.func.value
            if name in ("item", "tolist") and not call.args:
                if name == "tolist" and (sized := self.sized(held)):
                    return sized | SCALARS
                return SCALARS if self.reads.is_read(call) or self.inference.of(held).is_tensor else _NONE
            return self.sized(held) if name in _LENGTHS else self._returned(call, self.needs)
        name = self.syntax.builtin(call)
        if name == "len" and len(call.args) == 1:
            return self.sized(call.args[0])
        if name not in _OF_NUMBERS:
            return self._returned(call, self.needs)
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
        if d.how == "iteration" and isinstance(value, ast.Call) and self.syntax.builtin(value) in ("enumerate", "zip"):
            at = (path[0] if path else 0) - (self.syntax.builtin(value) == "enumerate")
            return self.needs(value.args[at]) if 0 <= at < len(value.args) else _NONE
        return self.needs(value)

    # --- tensors ----------------------------------------------------------------------------------------------------

    def sized(self, e: ast.expr) -> frozenset[str]:
        """The settings with which a size of the tensor ``e``, or of its list, is a symbol."""
        match e:
            case ast.Name():
                return self._defined(e, self._bound_tensor, self.sized)
            case ast.Call(func=ast.Attribute(value=held, attr="tolist"), args=[]):
                return self.sized(held)
            case ast.Call(func=func, args=args, keywords=keywords):
                if returned := self._returned(e, self.sized):
                    return returned
                given = [*args, *(k.value for k in keywords)]
                torch = (self.syntax.qualified(func) or "").startswith("torch.")
                name = func.attr if isinstance(func, ast.Attribute) else ""
                if name in _SIZED and self.reads.is_read(e):
                    return SHAPES
                if name in api.REDUCTIONS or not (torch or isinstance(func, ast.Attribute)):
                    return _NONE
                inner = self.sized(func.value) if isinstance(func, ast.Attribute) and not torch else _NONE
                tensors = [a for a in given if self.inference.of(a).is_tensor]
                of_tensors = frozenset().union(*map(self.sized, tensors))
                return inner | of_tensors | self._any(a for a in given if a not in tensors)
            case ast.Subscript(value=held, slice=index) if self.inference.of(e).kind is not Kind.PYTHON:
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                if any(self.inference.of(p).is_boolean for p in parts):
                    return SHAPES
                ends = [n for p in parts if isinstance(p, ast.Slice) for n in (p.lower, p.upper) if n is not None]
                rows = [p for p in parts if self.inference.of(p).is_tensor]
                return frozenset().union(self.sized(held), self._any(ends), *map(self.sized, rows))
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

    # --- integers ---------------------------------------------------------------------------------------------------

    def _binds_whole(self, d: Definition) -> bool:
        if d.value is None:
            return False
        if d.how == "iteration":
            return not d.path and self._lists_whole(d.value)
        if d.how != "assign":
            return False
        if not d.path:
            return self.is_whole(d.value)
        if isinstance(d.value, (ast.Tuple, ast.List)):
            return len(d.path) == 1 and d.path[0] < len(d.value.elts) and self.is_whole(d.value.elts[d.path[0]])
        return len(d.path) == 1 and (self._lists_whole(d.value) or self.sizes.is_shape(d.value))

    def _binds_flag(self, d: Definition) -> bool:
        return d.value is not None and d.how == "assign" and not d.path and self.is_flag(d.value)

    def _lists_whole(self, e: ast.expr) -> bool:
        """Whether ``e`` is a list of integers that were in a tensor."""
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr="tolist"), args=[], keywords=[]):
                return self._holds_integers(held)
            case ast.Name():
                found = self.inference.definitions(e)
                return bool(found) and all(self._closed(d, self._binds_list, False) for d in found)
        return False

    def _binds_list(self, d: Definition) -> bool:
        return d.value is not None and d.how == "assign" and not d.path and self._lists_whole(d.value)

    def _holds_integers(self, e: ast.expr) -> bool:
        value = self.inference.of(e)
        return value.is_tensor and value.dtype is not None and value.dtype.category is Category.INT

    # --- functions and names ------------------------------------------------------------------------------------------

    def _returned(self, call: ast.Call, asked: Callable[[ast.expr], frozenset[str]]) -> frozenset[str]:
        """``asked`` of what the functions of this file return that ``call`` may run."""
        found = _NONE
        for function in map(self.callees.here, self.callees.of(call)):
            if function is not None and function not in self._open:
                self._open.add(function)
                returns = (n.value for n in own_nodes(function) if isinstance(n, ast.Return))
                found = found.union(*(asked(value) for value in returns if value is not None))
                self._open.discard(function)
        return found

    def _any(self, parts: Iterable[ast.expr]) -> frozenset[str]:
        return frozenset().union(*map(self.needs, parts))

    def _defined(
        self,
        name: ast.Name,
        asked: Callable[[Definition], frozenset[str]],
        handed: Callable[[ast.expr], frozenset[str]],
    ) -> frozenset[str]:
        """``asked`` of what binds ``name``, and ``handed`` of what the project's calls give for it, if a parameter."""

        def all_of(d: Definition) -> frozenset[str]:
            return asked(d).union(*(handed(e) for e in self._given(name, d) if e is not None))

        found = self.inference.definitions(name)
        return frozenset().union(*(self._closed(d, all_of, _NONE) for d in found))

    def _given(self, name: ast.Name, d: Definition) -> list[ast.expr | None]:
        function = self.syntax.function_of(name)
        if d.how != "parameter" or function is None:
            return []
        parameter = next((a for a in all_parameters(function.args) if a.arg == name.id), None)
        return self.callers.given(function, parameter) if parameter is not None else []

    def _is_handed_whole(self, name: ast.Name, d: Definition) -> bool:
        """Whether ``name`` is a parameter for which each call gives an integer, and there are no other calls."""
        function = self.syntax.function_of(name)
        if function is None or not self.inference.calls_of(function):
            return False
        given = self._given(name, d)
        return bool(given) and all(e is not None and self.is_whole(e) for e in given)

    def _closed(self, d: Definition, asked: Callable[[Definition], T], otherwise: T) -> T:
        """What ``asked`` says of ``d``; ``otherwise`` where the definitions lead back to it."""
        if d in self._open:
            return otherwise
        self._open.add(d)
        try:
            return asked(d)
        finally:
            self._open.discard(d)
