"""Statements that only raise when a number of the data is not as it has to be, and what has to hold to go on."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.errors import raised, raises, said
from patcher.facts.compiling.in_force import InForce
from patcher.facts.tables.captured import taken_in_by
from patcher.rule import Code
from rules.fc711_size_check.unbacked import Unbacked

#: What gives a bool where numbers stand on both sides, and what says the opposite of it, where neither is a NaN.
_SPELLED: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
#: What the table of what gets into a graph calls checks of such numbers.
_WAYS = ("check of an item", "check of a length")


@dataclass(frozen=True)
class NumberCheck:
    """``facts``: what a statement demands, in order; none where they cannot be written. ``texts``: what it says."""

    facts: tuple[Code, ...]
    texts: tuple[str, ...]


class NumberChecks(Analysis):
    """Those of one module that settings in force leave in the graph's way."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.numbers = facts.ask(Unbacked)
        checked = (taken_in_by(way, facts.settings.target_torch) for way in _WAYS)
        self._set = facts.ask(InForce).names & frozenset().union(*checked)

    def of(self, statement: ast.If | ast.Assert) -> NumberCheck | None:
        """The check that ``statement`` is, or None when it is none that ends a graph."""
        if not self._set:
            return None
        match statement:
            case ast.If(test=test, body=body) if raises(body):
                error = raised(body)[0]
                message = error.args[0] if isinstance(error, ast.Call) and error.args else None
            case ast.Assert(test=test, msg=message):
                if (message is None or isinstance(message, ast.Constant)) and _is_taken(test):
                    return None
            case _:
                return None
        if not self._is_asked(test):
            return None
        torch = self.facts.writing.spelling("torch", statement)
        demands = self._demands(test, isinstance(statement, ast.Assert), torch)
        return NumberCheck(demands or (), said(message))

    def _is_asked(self, test: ast.expr) -> bool:
        """Whether compiled code decides ``test`` by a number that settings in force make a symbol."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._is_asked(operand)
            case ast.BoolOp(op=op, values=values):
                for value in values:
                    if self._is_asked(value):
                        return True
                    if self.facts.eager_tests.ends_compiled(value, op):
                        break
                return False
        needed = self.numbers.needs(test)
        return bool(needed) and self._set.issuperset(needed)

    def _demands(self, test: ast.expr, truth: bool, torch: str) -> tuple[Code, ...] | None:
        """What has to hold so that ``test`` is ``truth``; None where it is not a list of facts about such numbers."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._demands(operand, not truth, torch)
            case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is truth:
                parts = [self._demands(value, truth, torch) for value in values]
                return None if None in parts else tuple(code for part in parts for code in part or ())
        if isinstance(test, (ast.BoolOp, ast.NamedExpr)) or not self.numbers.needs(test):
            return None
        if isinstance(test, ast.Compare):
            return _compared(test, truth)
        if self.numbers.is_flag(test):
            return (Code("{0}" if truth else f"{torch}.sym_not({{0}})", (test,)),)
        return (Code("{0} != 0" if truth else "{0} == 0", (test,)),)


def _is_taken(test: ast.expr) -> bool:
    """Whether Dynamo asserts ``test`` in the graph as it is."""
    return not isinstance(test, (ast.BoolOp, ast.UnaryOp)) and not (isinstance(test, ast.Compare) and len(test.ops) > 1)


def _compared(test: ast.Compare, truth: bool) -> tuple[Code, ...] | None:
    """``a < b < c`` as two comparisons, where the middle may be evaluated twice; one, turned round if it is false."""
    sides = [test.left, *test.comparators]
    several = len(test.ops) > 1
    if not all(type(op) in _SPELLED for op in test.ops) or (several and not truth):
        return None
    if not all(isinstance(e, (ast.Name, ast.Constant)) for e in sides[1:-1]):
        return None
    if truth and not several:
        return (Code("{0}", (test,)),)
    pairs = zip(sides, test.ops, sides[1:], strict=False)
    return tuple(Code(f"{{0}} {_SPELLED[type(op)][not truth]} {{1}}", (left, right)) for left, op, right in pairs)
