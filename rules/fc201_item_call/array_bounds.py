"""A NumPy array of a few integers that are bounds of slices: compiled code makes a tensor of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis

_MAKERS = frozenset({"numpy.array", "numpy.asarray"})


@dataclass(frozen=True)
class Bounds:
    """The array ``made`` of ``source``, of which single elements alone are asked, as bounds of ``slices``."""

    made: ast.Call
    source: ast.expr
    slices: tuple[ast.Slice, ...]

    @property
    def assumption(self) -> str:
        """What has to be so for ``source`` to do in its place."""
        return f"`{ast.unparse(self.source)}` is a list or tuple of integers, and stays so while its elements are asked"


class ArrayBounds(Analysis):
    """Which arrays of one module only hold bounds of slices."""

    def of(self, made: ast.Call) -> Bounds | None:
        """The array that ``made`` makes, if that is all that it holds; None where it may be for more."""
        match made:
            case ast.Call(args=[ast.Name() | ast.Attribute() | ast.Subscript() | ast.List() | ast.Tuple() as source]):
                pass
            case _:
                return None
        statement = self.syntax.parents[made]
        if made.keywords or self.syntax.qualified(made.func) not in _MAKERS:
            return None
        match statement:
            case ast.Assign(targets=[ast.Name() as target]):
                readers = self.readers(target)
                slices = [self._bounded(use) for use in readers or ()]
                known = tuple(s for s in slices if s is not None)
                return Bounds(made, source, known) if known and len(known) == len(slices) else None
        return None

    def _bounded(self, use: ast.expr) -> ast.Slice | None:
        """The slice that an element of the array ``use`` bounds; None where that is not what it is for."""
        element = self.syntax.parents[use]
        if not isinstance(element, ast.Subscript) or element.value is not use or not _is_number(element.slice):
            return None
        around = self.syntax.parents[element]
        return around if isinstance(around, ast.Slice) else None


def _is_number(index: ast.expr) -> bool:
    inner = index.operand if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub) else index
    return isinstance(inner, ast.Constant) and type(inner.value) is int
