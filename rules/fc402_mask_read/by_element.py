"""Whether what is written back through a mask takes each element by itself: ``h[m] = 2 * x[m] - h[m]``."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.effects.totality import Effects

#: Methods that give the same bits whether or not an element has neighbours.
_EXACT = frozenset("abs neg negative relu clamp clamp_min clamp_max square sign floor ceil round trunc".split())
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_SAVING = "the backward pass may need what is overwritten"


class ByElement(Analysis):
    """Values that are assigned to ``target``, which ``y[mask]`` is, in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)

    def reads(self, e: ast.expr, target: ast.Subscript) -> list[ast.Subscript] | str:
        """The reads ``x[mask]`` that ``e`` is made of by exact operations that cannot fail; else the reason.

        With gradients, no operation is allowed that keeps one of them for the backward pass, or could send an infinite
        gradient to the places that the mask leaves out.
        """
        found: list[ast.Subscript] = []
        if (reason := self._why_not(e, target, found)) is not None:
            return reason
        changed = self.facts.ask(GradientMode).why_saved_changes(target.slice, self.syntax.statement_of(target))
        return f"a backward pass needs `{ast.unparse(target.slice)}` as it was, and {changed}" if changed else found

    def _why_not(self, e: ast.expr, target: ast.Subscript, found: list[ast.Subscript]) -> str | None:
        of, number = self.inference.of, self.effects.is_number
        match e:
            case ast.Subscript(value=base, slice=index) if ast.unparse(index) == ast.unparse(target.slice):
                found.append(e)
                shape = of(base).shape
                alike = isinstance(base, ast.Name) and shape is not None and shape == of(target.value).shape
                return None if alike else f"`{ast.unparse(base)}` is not known to have the shape of what is assigned to"
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
                if not self.facts.ask(GradientMode).off(e):
                    if isinstance(op, (ast.Mult, ast.Div)) and not (number(left) or number(right)):
                        return _SAVING
                    if (reason := self.effects.why_not_smooth(e)) is not None:
                        return reason
                return self._why_not(left, target, found) or self._why_not(right, target, found)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._why_not(operand, target, found)
            case ast.Call(func=ast.Attribute(value=receiver, attr=name), args=args, keywords=named) if name in _EXACT:
                if of(e).is_tensor and all(number(a) for a in [*args, *(k.value for k in named)]):
                    return self._why_not(receiver, target, found) if self.facts.ask(GradientMode).off(e) else _SAVING
        if number(e) and self.effects.why_not_total(e) is None:
            return None
        return f"`{ast.unparse(e)}` is not known to take each element by itself"
