"""A condition taken apart: the Python part that can stay a test, and the tensor part that cannot."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.totality import Effects
from patcher.facts.values.certainty import Certainty
from patcher.facts.values.types import Kind


@dataclass(frozen=True)
class Leaf:
    """A tensor that is tested. ``boolean`` and ``scalar``: whether dtype bool and rank 0 are known."""

    expr: ast.expr
    boolean: bool
    scalar: bool


@dataclass(frozen=True)
class Negation:
    """``not part``."""

    part: Tensor


@dataclass(frozen=True)
class Junction:
    """All of ``parts`` (``every``) or any of them."""

    every: bool
    parts: tuple[Tensor, ...]


Tensor = Leaf | Negation | Junction


@dataclass(frozen=True)
class Condition:
    """``guard and tensor`` (``conjunction``) or ``guard or tensor``; without a guard, just ``tensor``."""

    tensor: Tensor
    guard: tuple[ast.expr, ...] = ()
    conjunction: bool = True


class Conditions(Analysis):
    """Takes tests apart."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self.certainty = facts.ask(Certainty)

    def reads_data(self, test: ast.expr) -> bool:
        """Whether evaluating ``test`` as a truth value in compiled code reads a tensor, for all that is known."""
        match test:
            case ast.BoolOp(op=op, values=values):
                for v in values:
                    if self.reads_data(v):
                        return True
                    if self.facts.eager_tests.ends_compiled(v, op):
                        break
                return False
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.reads_data(operand)
            case ast.NamedExpr(value=value):
                return self.reads_data(value)
        held = self.inference.of(test)
        return held.is_tensor or held.data

    def take_apart(self, test: ast.expr) -> Condition | str:
        """The parts of ``test``, or why it cannot be taken apart.

        What would be evaluated where it was not before has to be such that this is no error and has no effect.
        """
        if isinstance(test, ast.BoolOp):
            every = isinstance(test.op, ast.And)
            guard = [v for v in test.values if not self.reads_data(v)]
            rest = [v for v in test.values if self.reads_data(v)]
            late = [v for v in guard if test.values.index(v) > test.values.index(rest[0])]
            for v in late:
                if self.inference.of(v).kind is not Kind.PYTHON or self.effects.why_not_total(v) is not None:
                    return f"`{ast.unparse(v)}` would be evaluated before the tensor"
            tensor = self._junction(every, rest)
            if late and not isinstance(tensor, str):
                reason = self._why_not_total(tensor)
                if reason is not None:
                    return reason
            return tensor if isinstance(tensor, str) else Condition(tensor, tuple(guard), every)
        tensor = self._tensor(test)
        return tensor if isinstance(tensor, str) else Condition(tensor)

    def why_not_total(self, condition: Condition) -> str | None:
        """None when all of ``condition`` can be evaluated at any time; else the reason that it cannot."""
        reasons = (self.effects.why_not_total(g) for g in condition.guard)
        return next((r for r in reasons if r is not None), None) or self._why_not_total(condition.tensor)

    def _junction(self, every: bool, values: list[ast.expr]) -> Tensor | str:
        parts: list[Tensor] = []
        for i, v in enumerate(values):
            part = self._tensor(v)
            if isinstance(part, str):
                return part
            if i and (reason := self._why_not_total(part)) is not None:
                return reason
            parts.append(part)
        return parts[0] if len(parts) == 1 else Junction(every, tuple(parts))

    def _why_not_total(self, part: Tensor) -> str | None:
        match part:
            case Leaf(expr=expr):
                return self.effects.why_not_total(expr)
            case Negation(part=inner):
                return self._why_not_total(inner)
            case Junction(parts=parts):
                return next((r for p in parts if (r := self._why_not_total(p)) is not None), None)

    def _tensor(self, test: ast.expr) -> Tensor | str:
        match test:
            case ast.BoolOp(op=op, values=values):
                if not all(map(self.reads_data, values)):
                    return f"`{ast.unparse(test)}` mixes tensors and Python values below the top"
                return self._junction(isinstance(op, ast.And), values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._tensor(operand)
                return inner if isinstance(inner, str) else Negation(inner)
            case ast.Call(args=[argument], keywords=[]) as call if self.syntax.builtin(call) == "bool":
                return self._tensor(argument)
            case ast.Call(func=ast.Attribute(value=receiver, attr="item"), args=[], keywords=[]):
                if self.inference.of(receiver).is_boolean:
                    return self._tensor(receiver)
            case ast.NamedExpr():
                return "the test binds a name"
        value = self.inference.of(test)
        if not value.is_tensor:
            return f"`{ast.unparse(test)}` reads the tensor on the host"
        if not self.certainty.is_used(test):
            return f"`{ast.unparse(test)}` may be a Python value, or an array"
        if value.rank is not None and value.rank.least > 0:
            return "the condition has a shape, so the result would get it too"
        return Leaf(test, value.is_boolean, value.is_scalar_tensor)
