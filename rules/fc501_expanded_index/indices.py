"""Index tensors that are one row for all samples: what they are made of, and where their copies go."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.totality import Effects
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Category, Kind

_AROUND = (ast.Tuple, ast.List, ast.Starred, ast.keyword)
_SAME = frozenset("to type long int contiguous clone cpu cuda detach".split())
#: torch functions that call what they are given.
_CALLING = frozenset({"torch.utils.checkpoint.checkpoint", "torch.compile"})


@dataclass(frozen=True)
class Row:
    """``torch.arange`` as (T) or (1, T), ``rank`` 1 or 2. ``length``: the name of T, when the source says it."""

    rank: int
    length: ast.Name | None


class Indices(Analysis):
    """Recognises rows of indices, and follows tensors to where they leave a function."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)

    def row(self, e: ast.expr) -> Row | None:
        """``e`` as a row of integers, or None."""
        value = self.inference.of(e)
        return self._row(e) if value.dtype is not None and value.dtype.category is Category.INT else None

    def _row(self, e: ast.expr) -> Row | None:
        match e:
            case ast.Call() if self.syntax.qualified(e.func) == "torch.arange":
                return Row(1, _length(e))
            case ast.Call(func=ast.Attribute(value=base, attr=name)) if self.syntax.qualified(e.func) is None:
                return self._reshaped(base, name, e.args)
            case ast.Subscript(value=base, slice=index):
                row = self._row(base)
                adds = ast.unparse(index) in ("None", "(None, :)", "(None, ...)")
                return replace(row, rank=2) if row is not None and row.rank == 1 and adds else None
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                base, other = (left, right) if self.inference.of(left).is_tensor else (right, left)
                return self._row(base) if self.inference.of(other).python in ("int", "size") else None
            case ast.Name():
                (d, *more) = self.inference.definitions(e) or (None,)
                plain = d is not None and not more and d.how == "assign" and not d.path
                return self._row(d.value) if plain and d is not None and d.value is not None else None
        return None

    def _reshaped(self, base: ast.expr, name: str, arguments: list[ast.expr]) -> Row | None:
        row = self._row(base)
        if row is None or name in _SAME:
            return row
        if name == "unsqueeze" and row.rank == 1 and [ast.unparse(a) for a in arguments] in (["0"], ["-2"]):
            return replace(row, rank=2)
        two = name in ("view", "reshape") and len(arguments) == 2 and ast.unparse(arguments[0]) == "1"
        return replace(row, rank=2) if two else None

    def same_number(self, length: ast.Name | None, width: ast.expr) -> bool:
        """Whether ``width`` is the name ``length``, and has the same value."""
        if length is None or not isinstance(width, ast.Name) or width.id != length.id:
            return False
        return self.inference.definitions(width) == self.inference.definitions(length)

    def crosses(self, e: ast.expr, seen: frozenset[ast.AST] = frozenset()) -> str | None:
        """How the tensor ``e`` gets to code that may be compiled by itself; None where it does not."""
        outer: ast.AST = self.effects.through_views(e)
        parent = self.syntax.parents[outer]
        while isinstance(parent, _AROUND):
            outer, parent = parent, self.syntax.parents[parent]
        match parent:
            case ast.Return():
                return "it is returned"
            case ast.Call(func=func) if func is not outer:
                called = ast.unparse(func).splitlines()[0][:40]
                return f"it is handed to `{called}`" if self._may_be_compiled(func) else None
            case ast.Assign(targets=[ast.Name() as target]) if target not in seen:
                function = self.syntax.function_of(target)
                flow = self.flow_of(function) if function is not None else None
                d = flow.by_node.get(target) if flow is not None else None
                uses = flow.uses.get(d, ()) if flow is not None and d is not None else ()
                found = (self.crosses(use, seen | {target}) for use in uses if isinstance(use, ast.Name))
                return next(filter(None, found), None)
        return None

    def _may_be_compiled(self, func: ast.expr) -> bool:
        """Whether what is called may be compiled by itself; a plain function is traced with its caller."""
        what = self.syntax.qualified(func)
        if what is not None and what.startswith("torch."):
            return what in _CALLING
        if what is not None or isinstance(func, ast.Name):
            name = what or f"{self.module}.{ast.unparse(func)}"
            function = self.project.function(name)
            bound = what is None and bool(self.inference.definitions(func)) if isinstance(func, ast.Name) else False
            return bound or self.project.is_module_class(name) or (function is not None and function.compiled)
        if not isinstance(func, ast.Attribute) or self.inference.instance_attribute(func) is not None:
            return True
        receiver = self.inference.of(func.value)
        return receiver.kind is Kind.MODULE or not (receiver.is_tensor or func.attr in api.TENSOR_ONLY | api.ALIASING)


def _length(arange: ast.Call) -> ast.Name | None:
    """How many numbers ``torch.arange`` gives, where that is a name: of ``n``, ``0, n`` or ``s, s + n``."""
    match arange.args:
        case [ast.Name() as end] | [ast.Constant(value=0), ast.Name() as end]:
            return end
        case [ast.Name() as start, ast.BinOp(left=ast.Name() as left, op=ast.Add(), right=ast.Name() as right)]:
            return right if start.id == left.id else None
    return None
