"""Sizes that get into the graph with a check: where one is 1 or -1, a graph does not do what Python does.

A tensor with one row is repeated to the size of another, and ``expand(-1)`` keeps a size. In a graph a size without a
value is taken for neither, and whatever is found out when it runs raises. As long as the check ends the graph, what
comes after it has sizes with values.
"""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition, Flow
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Category
from rules.fc711_size_check.unbacked import Unbacked

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
#: What is made of numbers, and a number as they are.
_NUMBERS = (ast.BinOp, ast.UnaryOp, ast.IfExp)
#: What a number ends in: a truth, or a text for people.
_ENDS = (ast.Compare, ast.BoolOp, ast.FormattedValue, ast.If, ast.Assert, ast.Expr, ast.Raise)


class AsSizes(Analysis):
    """Which symbols of the functions of one module may be sizes of tensors."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.numbers = facts.ask(Unbacked)

    def after(self, check: ast.stmt) -> str:
        """What has to be assumed of the symbols known at ``check`` once they have no values below it; "" nothing."""
        use = self._after(check, frozenset(), frozenset())
        if use is None:
            return ""
        if self.numbers.is_flag(use):  # measured: inductor fails on masked_fill(mask, flag)
            return f"the backend can compile what is given the flag `{use.id}`, which has no value in the graph"
        return f"as a size `{use.id}` is neither 1 nor -1: a graph repeats no rows of an unknown number"

    def _after(self, at: ast.stmt, handed: frozenset[ast.expr], functions: frozenset[FunctionNode]) -> ast.Name | None:
        """A symbol that may be a size below ``at``, in its function or in those of this file that call it there.

        ``handed``: what the call in ``at`` gives that leads to the check.
        """
        function = self.syntax.function_of(at)
        if function is None or function in functions:
            return None
        flow = self.flow_of(function)
        loop = next((p for p in reversed([*self.syntax.ancestors(at)]) if isinstance(p, _LOOPS)), None)
        bound, read = (_place(at), _place(at) if handed else _end(at)) if loop is None else (_end(loop), _place(loop))
        seen: set[Definition] = set()
        for d in [d for d in flow.uses if d.how == "parameter" or _place(d.node) < bound]:
            use = self._size(d, read, flow, seen, handed)
            if use is not None:
                return use
        for call in self.numbers.callers.of(function):
            given = frozenset([*call.args, *(k.value for k in call.keywords), call.func])
            use = self._after(self.syntax.statement_of(call), given, functions | {function})
            if use is not None:
                return use
        return None

    def _size(
        self, d: Definition, since: tuple[int, int], flow: Flow, seen: set[Definition], handed: frozenset[ast.expr]
    ) -> ast.Name | None:
        """Where after ``since`` what ``d`` binds may be a size, or has one."""
        if d in seen:
            return None
        seen.add(d)
        for use in flow.uses.get(d, []):
            if _place(use) < since or use in handed:
                continue
            sized = bool(self.numbers.sized(use))
            number = self._length(use) if sized else use
            if number is None or (not sized and (not self.numbers.needs(use) or self._is_no_size(use))):
                if number is None and not self._is_reduced(use):
                    return use
                continue
            bound = self._bound_by(number, flow)
            if bound is None or any(self._size(b, since, flow, seen, handed) for b in bound):
                return use
        return None

    def _length(self, use: ast.Name) -> ast.expr | None:
        """The number that is asked of the tensor ``use``: one of its sizes, or of its elements."""
        read = self.syntax.parents[use]
        above = self.syntax.parents[read]
        match read, above:
            case ast.Attribute(attr="shape"), ast.Subscript(slice=ast.Constant()):
                return above
            case ast.Attribute(attr="numel" | "nelement" | "size"), ast.Call():
                return above
            case ast.Call(), _ if self.syntax.builtin(read) == "len":
                return read
        return None

    def _is_reduced(self, use: ast.Name) -> bool:
        """Whether all elements of ``use`` are made one."""
        read = self.syntax.parents[use]
        call = self.syntax.parents[read]
        return (
            isinstance(read, ast.Attribute)
            and isinstance(call, ast.Call)
            and read.attr in api.REDUCTIONS
            and not (call.args or call.keywords)
        )

    def _bound_by(self, e: ast.expr, flow: Flow) -> list[Definition] | None:
        """The names that the number ``e`` goes on to; None where it goes anywhere else than into arithmetic."""
        while True:
            parent = self.syntax.parents[e]
            if isinstance(parent, ast.BinOp):
                other = parent.right if parent.left is e else parent.left
                if self._is_tensor(other):
                    return None if isinstance(parent.op, ast.MatMult) else []
            number = isinstance(parent, ast.Call) and self.syntax.builtin(parent) in ("int", "float", "bool", "abs")
            if not number and not isinstance(parent, _NUMBERS):
                break
            assert isinstance(parent, ast.expr)
            e = parent
        if isinstance(parent, _ENDS):
            return []
        if isinstance(parent, ast.AugAssign) and isinstance(parent.target, ast.Name):
            tensor = self.inference.of(parent.target).is_tensor
            return [] if tensor else [d for d in flow.uses if d.node is parent or d.node is parent.target]
        if isinstance(parent, ast.Assign) and all(isinstance(t, ast.Name) for t in parent.targets):
            return [d for d in flow.uses if d.value is e]
        if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is e:  # a list of them, one by one
            return [d for d in flow.uses if d.value is e]
        return None

    def _is_no_size(self, use: ast.Name) -> bool:
        """Whether ``use`` is a tensor, or a floating number."""
        if self._is_tensor(use):
            return True
        found = self.inference.definitions(use)
        return bool(found) and all(d.how == "assign" and self._is_floating(d.value) for d in found)

    def _is_tensor(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether ``e`` is a tensor, also one that a loop computes with turn by turn."""
        if self.inference.of(e).is_tensor or not isinstance(e, ast.Name):
            return self.inference.of(e).is_tensor
        found = self.inference.definitions(e)
        return bool(found) and all(d in seen or self._binds_tensor(d, seen | {d}) for d in found)

    def _binds_tensor(self, d: Definition, seen: frozenset[Definition]) -> bool:
        if isinstance(d.value, ast.BinOp) and d.how == "assign" and not d.path:
            return any(self._is_tensor(side, seen) for side in (d.value.left, d.value.right))
        return self.inference.defined(d).is_tensor

    def _is_floating(self, e: ast.expr | None) -> bool:
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr="item"), args=[]):
                dtype = self.inference.of(held).dtype
                return dtype is not None and dtype.category is Category.FLOAT
            case ast.Call():
                return self.syntax.builtin(e) == "float"
        return False


def _end(n: ast.stmt) -> tuple[int, int]:
    return n.end_lineno or 0, n.end_col_offset or 0


def _place(n: ast.AST) -> tuple[int, int]:
    return getattr(n, "lineno", 0), getattr(n, "col_offset", 0)
