"""``x[mask]`` with a boolean mask: what is read, and whether a tensor may stand where the number of its places does."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.checks.caught import Caught
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import integer, is_whole

_PLAIN = (ast.Constant, ast.Slice, ast.List, ast.JoinedStr, ast.Lambda, ast.Dict, ast.Set)
_REDUCTIONS = ("sum", "mean", "any", "all")
_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


@dataclass(frozen=True)
class MaskedRead:
    """``base[mask]``, or ``masked_select``.

    ``row``: how many dimensions of ``base`` the mask leaves out; None when that is not proven.
    ``sure``: anything but a tensor for a mask would raise. ``first``: the mask is all of the index.
    """

    node: ast.Subscript | ast.Call
    base: ast.expr
    mask: ast.expr
    row: int | None
    sure: bool
    first: bool


class MaskedReads(Analysis):
    """Reads through masks of one module."""

    def of(self, node: ast.Subscript | ast.Call) -> MaskedRead | None:
        """``node`` as a read through a boolean mask; None when it is none, as far as can be told."""
        if isinstance(node, ast.Call):
            return self._selected(node)
        if not isinstance(node.ctx, ast.Load) or isinstance(node.slice, _PLAIN):
            return None
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        masks = [p for p in parts if not isinstance(p, _PLAIN) and self.presumed.boolean(p)]
        if len(masks) != 1 or self.inference.of(node.value).python in ("container", "size", "str"):
            return None
        first = parts[0] is masks[0] and all(is_whole(p) for p in parts[1:])
        row = self.row(node.value, masks[0]) if first else None
        sure = self.presumed.sure(masks[0], self.inference)
        if not sure and not self.presumed.of(node.value).is_tensor:
            return None  # a pair, and which of them
        return MaskedRead(node, node.value, masks[0], row, sure, first)

    def _selected(self, call: ast.Call) -> MaskedRead | None:
        """``masked_select``, which takes a mask that fits by broadcasting: only one of the same shape is followed."""
        what, args = self.syntax.qualified(call.func), list(call.args)
        if what is None and isinstance(call.func, ast.Attribute) and call.func.attr == "masked_select":
            args.insert(0, call.func.value)
        elif what != "torch.masked_select":
            return None
        if len(args) != 2 or call.keywords:
            return None
        row = 0 if self.row(args[0], args[1]) == 0 else None
        return MaskedRead(call, args[0], args[1], row, sure=True, first=True)

    def row(self, base: ast.expr, mask: ast.expr) -> int | None:
        """How many dimensions a mask that has the leading shape of ``base`` leaves to a row; None: not proven."""
        shape = self.presumed.of(base).shape
        return shape.row_dimensions(self.presumed.of(mask).shape) if shape is not None else None

    # --- what becomes of it ------------------------------------------------------------------------------------------

    def counted(self, read: MaskedRead) -> tuple[ast.expr, bool] | None:
        """The expression that counts what is read, and whether it counts elements (or else rows)."""
        outer = self.syntax.parents[read.node]
        above = self.syntax.parents[outer]
        match outer:
            case ast.Attribute(attr="numel" | "nelement"):
                return (above, True) if isinstance(above, ast.Call) and not above.args else None
            case ast.Attribute(attr="size") if (
                isinstance(above, ast.Call) and above.args and integer(above.args[0]) == 0
            ):
                return above, False
            case ast.Attribute(attr="shape"):
                return (above, False) if isinstance(above, ast.Subscript) and integer(above.slice) == 0 else None
            case ast.Call() if self.syntax.builtin(outer) == "len":
                return outer, False
            case ast.Call(func=func, args=[_], keywords=[]) if self.syntax.qualified(func) == "torch.numel":
                return outer, True
        return None

    def reduced(self, read: MaskedRead) -> tuple[ast.Call, str] | None:
        """The call that reduces all of what is read to one number, and its name."""
        outer = self.syntax.parents[read.node]
        call = self.syntax.parents[outer]
        if isinstance(outer, ast.Call) and len(outer.args) == 1 and not outer.keywords:
            name = (self.syntax.qualified(outer.func) or "").removeprefix("torch.")
            return (outer, name) if name in _REDUCTIONS and outer.args[0] is read.node else None
        if not isinstance(outer, ast.Attribute) or outer.attr not in _REDUCTIONS:
            return None
        plain = isinstance(call, ast.Call) and call.func is outer and not (call.args or call.keywords)
        return (call, outer.attr) if plain and isinstance(call, ast.Call) else None

    def written_back(self, read: MaskedRead) -> ast.Subscript | None:
        """The target of the assignment ``y[m] = f(x[m])`` that the read stands in."""
        statement = self.syntax.statement_of(read.node)
        target = _target(statement)
        if target is None or not isinstance(read.node, ast.Subscript):
            return None
        return target if _alike(target.slice, read.node.slice) else None

    def assigned_as_it_is(self, read: MaskedRead) -> bool:
        """``y[m] = x[m]``, where the right side may be converted."""
        target = self.written_back(read)
        value = self.syntax.statement_of(read.node).value if target is not None else None  # type: ignore[attr-defined]
        match value:
            case ast.Call(func=ast.Attribute(attr="to" | "type_as", value=inner)):
                value = inner
        return value is read.node

    # --- a number that becomes a 0-d tensor -------------------------------------------------------------------------

    def why_not_number(self, e: ast.expr, names: int = 1) -> str | None:
        """None when a 0-d integer tensor does as well as the int ``e`` wherever that goes; else what needs the int.

        It is followed through as many ``names``.
        """
        parent = self.syntax.parents[e]
        match parent:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, _IDENTITY):
                other = right if left is e else left
                if not self._whole_number(other):
                    return f"what `{ast.unparse(other)}` holds is not known"
                return self.why_not_condition(parent, names)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult(), right=right):
                other = right if left is e else left
                if not self._whole_number(other):
                    return f"what `{ast.unparse(other)}` holds is not known"
                return self.why_not_number(parent, names)
            case ast.FormattedValue(conversion=-1):
                return None
        uses = self.uses(e) if names else None
        if uses is None:
            return "the number is needed on the host"
        return next((r for use in uses if (r := self.why_not_number(use, names - 1)) is not None), None)

    def why_not_condition(self, e: ast.expr, names: int = 1) -> str | None:
        """None when a 0-d boolean tensor does as well as the bool ``e`` wherever that goes."""
        parent = self.syntax.parents[e]
        match parent:
            case ast.Assert(test=test) if test is e:
                return None
            case ast.If(test=test, body=[*_, last]) if test is e:
                return None if isinstance(last, ast.Raise) else "the branch on it would break the graph as well"
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self.why_not_condition(parent, names)
            case ast.Call() | ast.keyword():
                call = parent if isinstance(parent, ast.Call) else self.syntax.parents[parent]
                if isinstance(call, ast.Call) and call.func is not e:
                    return self._why_not_taken(call, e)
        uses = self.uses(e) if names else None
        if uses is None:
            return "the bool is needed on the host"
        return next((r for use in uses if (r := self.why_not_condition(use, names - 1)) is not None), None)

    def uses(self, e: ast.expr) -> list[ast.Name] | None:
        """Where the name is read that ``e`` is assigned to; None when it goes anywhere else."""
        match self.syntax.parents[e]:
            case ast.Assign(targets=[ast.Name() as target]):
                return self.readers(target)
        return None

    def _whole_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is an int for sure; a float would be compared in another precision."""
        return self.inference.of(e).python in ("int", "size")

    def _why_not_taken(self, call: ast.Call, e: ast.expr) -> str | None:
        what = self.syntax.qualified(call.func)
        if what is None and (text := dotted(call.func)) and not self.inference.definitions_of_root(call.func):
            what = f"{self.module}.{text}"
        callee = self.project.handed_on(what) if what is not None else None
        name = next((k.arg for k in call.keywords if k.value is e), None)
        if callee is not None and e in call.args and not any(isinstance(a, ast.Starred) for a in call.args):
            at = call.args.index(e)
            name = callee.positional[at] if at < len(callee.positional) else None
        if callee is not None and name in callee.conditions:  # compiled, what checks a tensor raises at a later moment
            return self.facts.ask(Caught).why(self.syntax.statement_of(call), ("RuntimeError",))
        return f"`{ast.unparse(call.func)}` is not known to take a tensor for a bool"


def _target(statement: ast.stmt) -> ast.Subscript | None:
    """``y[i]`` of ``y[i] = value``."""
    only = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return only if isinstance(only, ast.Subscript) else None


def _alike(a: ast.expr, b: ast.expr) -> bool:
    return ast.unparse(a) == ast.unparse(b)
