"""Assignments to a part of a tensor that begins where a tensor says, and how long that part is."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import same_expression
from patcher.facts.syntax.written import is_none, short
from patcher.facts.values.sizes import Sizes
from patcher.facts.values.types import Kind
from patcher.rule import Code
from rules.fc306_tensor_position_write.positions import Positions


@dataclass(frozen=True)
class SliceWrite:
    """``statement`` assigns to a part of a tensor along one dimension, from the tensor ``start`` on.

    ``reason``: why it is left as it is. Else: ``base``, what is written into, ``dim``, the dimension (from the end when
    it is negative), and ``size``, the expression for the length.
    """

    statement: ast.Assign
    start: ast.expr
    reason: str = ""
    base: Code | None = None
    dim: int = 0
    size: ast.expr | None = None


class SliceWrites(Analysis):
    """Finds them in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._positions = facts.ask(Positions)
        self._sizes = facts.ask(Sizes)

    def of(self, statement: ast.Assign) -> SliceWrite | None:
        """What ``statement`` writes, if the host has to know a tensor's value for it; else None."""
        target = statement.targets[0]
        if len(statement.targets) != 1 or not isinstance(target, ast.Subscript):
            return None
        elements = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        moving = [e for e in elements if isinstance(e, ast.Slice) and self._asks(e)]
        if not moving or self.inference.of(target.value).kind is Kind.PYTHON:
            return None
        part = moving[0]
        start = next(b for b in (part.lower, part.upper, part.step) if b is not None and self._positions.is_tensor(b))
        size = self._size(part)
        base = self._base(target, elements, part)
        reason = "two bounds of it move" if len(moving) > 1 else self.facts.writing.why_not_replaced(statement) or ""
        if self.inference.of(statement.value).kind is Kind.PYTHON:
            reason = f"`{short(statement.value)}` is no tensor"
        for outcome in (size, base):
            reason = reason or (outcome if isinstance(outcome, str) else "")
        if reason or isinstance(size, str) or isinstance(base, str):
            return SliceWrite(statement, start, reason)
        return SliceWrite(statement, start, "", base[0], base[1], size)

    def _asks(self, e: ast.Slice) -> bool:
        return any(bound is not None and self._positions.is_tensor(bound) for bound in (e.lower, e.upper, e.step))

    # --- where it begins, how long it is ----------------------------------------------------------------------------

    def _size(self, part: ast.Slice) -> ast.expr | str:
        """How long ``part`` is: what its end adds to its beginning; or why that is not known."""
        lower, upper = part.lower, part.upper
        if part.step is not None and not is_none(part.step):
            return "it has a step"
        if lower is None or is_none(lower):
            return "it begins at the first place, and how long it is is data"
        if upper is None or is_none(upper):
            return "it goes on to the last place, and how long it is is data"
        if not self._positions.is_tensor(lower):
            return "it begins at a number, and how long it is is data"
        made: ast.expr = upper
        if isinstance(upper, ast.Name):
            (definition, *others) = self.inference.definitions(upper) or (None,)
            if definition is None or others or definition.how != "assign" or definition.path or not definition.value:
                return f"where `{upper.id}` is from is not plain to see"
            made = definition.value
        size = _added(made, lower)
        if size is None:
            return f"`{short(made)}` is not `{short(lower)}` and a length"
        if self._positions.is_tensor(size):
            return f"its length, `{short(size)}`, is data"
        return size

    # --- what is written into ---------------------------------------------------------------------------------------

    def _base(self, target: ast.Subscript, elements: list[ast.expr], part: ast.Slice) -> tuple[Code, int] | str:
        """The tensor, or view of it, that is written into along one dimension, and which one; or why there is none."""
        texts, before, after, dotted_before = [], 0, 0, False
        seen = False
        for e in elements:
            kept = 1
            if e is part:
                seen, kept = True, 0
                texts.append(":")
            elif isinstance(e, ast.Constant) and e.value is ...:
                dotted_before, kept = not seen, 0
                texts.append("...")
            elif isinstance(e, ast.Slice) or is_none(e):
                texts.append(ast.unparse(e))
            elif self._is_integer(e):
                kept = 0
                texts.append(ast.unparse(e))
            else:
                return f"whether `{short(e)}` is one integer is not known"
            before, after = before + kept * (not seen), after + kept * seen
        whole = all(t in (":", "...") for t in texts)
        text = ", ".join(texts).replace("{", "{{").replace("}", "}}")
        base = Code("{0}", (target.value,)) if whole else Code(f"{{0}}[{text}]", (target.value,))
        return base, -1 - after if dotted_before else before

    def _is_integer(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Constant):
            return type(e.value) is int
        value = self.inference.of(e)
        plain = value.kind is Kind.PYTHON and value.python in ("int", "size") and not value.data
        return plain or self._sizes.is_integer(e)


def _added(e: ast.expr, start: ast.expr) -> ast.expr | None:
    """What ``e`` adds to ``start``."""
    match e:
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            if same_expression(left, start):
                return right
            return left if same_expression(right, start) else None
    return None
