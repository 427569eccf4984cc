"""Numbers that are sizes: never negative, and symbolic while Dynamo traces."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.values.certainty import Certainty
from patcher.facts.values.types import Kind

if TYPE_CHECKING:
    from patcher.facts import Facts


class Sizes(Analysis):
    """Recognises sizes by how they are read: ``x.shape[1]``, ``x.size(0)``, ``len(x)``, and names for these.

    What has a ``shape`` is taken for a tensor (or an array), whose sizes are ints; not where an
    object of the project may have one.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._certainty = facts.ask(Certainty)
        self._open: set[ast.AST] = set()

    def is_shape(self, e: ast.expr) -> bool:
        """Whether ``e`` is the shape of a tensor, or a slice of it."""
        match e:
            case ast.Attribute(value=base, attr="shape"):
                return self._has(base, "shape")
            case ast.Call(func=ast.Attribute(value=base, attr="size"), args=[], keywords=[]):
                return self.inference.instance_attribute(e.func) is None and self._has(base, "size")
            case ast.Subscript(value=base, slice=ast.Slice()):
                return self.is_shape(base)
            case ast.Name():
                return self._all(e, lambda d: not d.path and d.value is not None and self.is_shape(d.value))
        return False

    def is_size(self, e: ast.expr) -> bool:
        """Whether ``e`` is one size of a tensor."""
        match e:
            case ast.Subscript(value=base, slice=index):
                return not isinstance(index, ast.Slice) and self.is_shape(base)
            case ast.Call(func=ast.Attribute(value=base, attr="size"), args=[_], keywords=[]):
                return self.inference.instance_attribute(e.func) is None and self._has(base, "size")
            case ast.Call(func=ast.Attribute(value=base, attr="size"), args=[], keywords=[ast.keyword(arg="dim")]):
                return self._has(base, "size")
            case ast.Call(func=ast.Name(id="len") as name, args=[argument]):
                return self.inference.of(argument).is_tensor and self.syntax.is_builtin(name)
            case ast.Name():
                return self._all(e, self._binds_size)
        return False

    def is_count(self, e: ast.expr) -> bool:
        """Whether ``e`` is an int for sure, and never negative: a size, or sums and products of such."""
        match e:
            case ast.Constant(value=value):
                return type(value) is int and value >= 0
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
                return self.is_count(left) and self.is_count(right)
            case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod(), right=right):
                return self.is_count(left) and self.is_count(right)
            case ast.Call(func=ast.Attribute(value=base, attr="numel" | "nelement"), args=[], keywords=[]):
                return self.inference.of(base).is_tensor
            case ast.Call(func=ast.Name(id="len") as name, args=[_]):
                return self.syntax.is_builtin(name)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_count(body) and self.is_count(orelse)
            case ast.Name() if not self.is_size(e):
                return self._all(e, lambda d: not d.path and d.value is not None and self.is_count(d.value))
        return self.is_size(e)

    def is_integer(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python integer for sure, and none that was read out of a tensor.

        What is only annotated as one may be a number of NumPy's, or a tensor.
        """
        value = self.inference.of(e)
        whole = value.python in ("int", "size") and not value.data
        return (whole and self._certainty.is_number(e)) or self.is_count(e)

    def is_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number of Python's for sure: worked out of sizes and of numbers that are written there."""
        match e:
            case ast.Constant(value=value):
                return isinstance(value, (bool, int, float))
            case ast.Compare(left=left, comparators=others):
                return all(map(self.is_number, (left, *others)))
            case ast.BinOp(left=left, right=right):
                return self.is_number(left) and self.is_number(right)
            case ast.UnaryOp(operand=operand):
                return self.is_number(operand)
            case ast.Name() if not self.is_size(e):
                return self._all(e, lambda d: not d.path and d.value is not None and self.is_number(d.value))
        return self.is_count(e)

    def is_no_tensor(self, test: ast.expr) -> bool:
        """Whether ``test`` asks a number whether it is a tensor, which is so only where ``torch.jit.trace`` runs."""
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() as name, kind], keywords=[]):
                return self.syntax.qualified(kind) == "torch.Tensor" and self.is_number(name)
            case ast.Call(func=func, args=[ast.Name() as name], keywords=[]):
                return self.syntax.qualified(func) in ("torch.is_tensor", "torch.overrides.is_tensor_like") and (
                    self.is_number(name)
                )
        return False

    def _binds_size(self, d: Definition) -> bool:
        if d.value is None:
            return False
        if not d.path:
            return self.is_size(d.value)
        if len(d.path) > 1:
            return False
        if isinstance(d.value, (ast.Tuple, ast.List)):
            return d.path[0] < len(d.value.elts) and self.is_size(d.value.elts[d.path[0]])
        return self.is_shape(d.value)

    def _has(self, e: ast.expr, name: str) -> bool:
        value = self.inference.of(e)
        return value.is_tensor or (value.kind is Kind.UNKNOWN and name in self.inference.tensor_names)

    def _all(self, name: ast.Name, test: Callable[[Definition], bool]) -> bool:
        """Whether ``name`` is bound by assignments alone, and all of them pass ``test``."""
        if name in self._open:  # a loop through definitions
            return False
        self._open.add(name)
        try:
            found = self.inference.definitions(name)
            return bool(found) and all(d.how == "assign" and test(d) for d in found)
        finally:
            self._open.discard(name)
