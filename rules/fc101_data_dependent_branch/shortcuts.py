"""A test that may only save work: ``if mask.all(): return x``, of which a run has seen both answers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Conditions
from patcher.facts.effects.unchanged import Unchanged

BOTH = frozenset({True, False})
#: What is true where there is nothing special, and what is true where there is.
_USUAL, _SPECIAL = frozenset({"all"}), frozenset({"any"})
_COUNTING = frozenset({"count_nonzero", "sum"})
_WHOLE = frozenset({"torch.bool", "torch.int64", "torch.int32"})


@dataclass(frozen=True)
class Shortcut:
    """``test`` saves work where it is true; or where it is not, with ``turned``."""

    test: ast.expr
    turned: bool


class Shortcuts(Analysis):
    """Such tests of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.conditions = facts.ask(Conditions)

    def of(self, node: ast.If | ast.IfExp) -> Shortcut | None:
        """The part of the test of ``node`` that asks; None where it asks for something else, or had one answer."""
        if any(isinstance(p, ast.While) for p in self.syntax.ancestors(node)):
            return None  # it may be what ends the loop
        asking = [e for e in operands(node.test) if self.conditions.reads_data(e)]
        if len(asking) != 1 or self.facts.ask(Unchanged).why_impure(asking[0]):
            return None  # compiled code leaves it out
        (test,) = asking
        seen, saves = self.inference.observed(test), self._saves(test)
        return None if saves is None or seen is None or seen.truths != BOTH else Shortcut(test, not saves)

    def _saves(self, e: ast.expr) -> bool | None:
        """Whether the general case is where ``e`` is false; None where nothing tells."""
        match e:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._saves(operand)
                return None if inner is None else not inner
            case (
                ast.Call(func=ast.Name(id="bool"), args=[inner])
                | ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[])
            ):
                return self._saves(inner)
            case ast.Call(func=ast.Attribute(attr=name)) if name in _USUAL | _SPECIAL:
                return name in _USUAL
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op]) if self._counts(left):
                return isinstance(op, ast.Eq)
            case ast.Compare(left=left, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]) if self._counts(left):
                return False
            case ast.Name():
                values = [d.part[0] for d in self.inference.definitions(e) if d.how == "assign"]
                (known, *others) = [self._saves(v) if v is not None else None for v in values] or [None]
                return None if others else known
        return None

    def _counts(self, e: ast.expr) -> bool:
        """Whether ``e`` is how many places are set: a sum of truths or whole numbers."""
        match e:
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]):
                return self._counts(inner)
            case ast.Call(func=ast.Attribute(value=held, attr=name), args=args) if name in _COUNTING:
                known = (self.inference.observed(part) for part in (held, *args))
                return any(seen is not None and seen.is_tensor and seen.dtypes <= _WHOLE for seen in known)
        return False


def operands(test: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of ``test`` that are truths by themselves."""
    match test:
        case ast.BoolOp(values=values):
            for value in values:
                yield from operands(value)
        case ast.UnaryOp(op=ast.Not(), operand=ast.BoolOp() as inner):
            yield from operands(inner)
        case _:
            yield test
