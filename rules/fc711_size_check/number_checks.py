"""Statements that only raise when a number of the data is not as it has to be, and what has to hold to go on."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.caught import Caught
from patcher.facts.checks.errors import error_name, raised, raises, said
from patcher.facts.checks.lasting import Lasting
from patcher.facts.compiling.in_force import InForce
from patcher.facts.tables.captured import taken_in_by
from patcher.facts.values.sizes import Sizes
from patcher.rule import Code
from rules.fc711_size_check.as_sizes import AsSizes
from rules.fc711_size_check.unbacked import Unbacked

#: What gives a bool where numbers stand on both sides, and what says the opposite of it, where neither is a NaN.
_SPELLED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_OPPOSITE: dict[type[ast.cmpop], str] = {
    ast.Lt: ">=",
    ast.LtE: ">",
    ast.Gt: "<=",
    ast.GtE: "<",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
#: What the table of what gets into a graph calls checks of such numbers.
_WAYS = ("check of an item", "check of a length")


@dataclass(frozen=True)
class Fact:
    """``code`` has to be true where all of ``tests``, Python values, have the truth beside them.

    ``assumed``: what is taken for granted of it; "" when nothing is. ``part``: of the test of the statement, where it
    is from.
    """

    code: Code
    part: ast.expr
    tests: tuple[tuple[ast.expr, bool], ...] = ()
    assumed: str = ""


@dataclass(frozen=True)
class NumberCheck:
    """``facts``: what a statement demands, in order. ``host``: parts of its test that are Python values and end it too.

    ``texts``: what it says when one does not hold. ``assumed``: what a rewrite takes for granted; "" when nothing.
    """

    facts: tuple[Fact, ...]
    host: bool
    texts: tuple[str, ...]
    assumed: str = ""


class NumberChecks(Analysis):
    """Those of one module that settings in force leave in the graph's way."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.numbers = facts.ask(Unbacked)
        self.sizes = facts.ask(Sizes)
        self.caught = facts.ask(Caught)
        self._torch = "torch"  # as the statement in question spells it
        checked = (taken_in_by(way, facts.settings.target_torch) for way in _WAYS)
        self._set = facts.ask(InForce).names & frozenset().union(*checked)

    def of(self, statement: ast.If | ast.Assert) -> NumberCheck | str | None:
        """The check that ``statement`` is, why it is left as it is, or None when it is none that ends a graph."""
        if not self._set:
            return None
        match statement:
            case ast.If(test=test, body=body) if raises(body):
                errors = raised(body)
                first = errors[0].args[0] if isinstance(errors[0], ast.Call) and errors[0].args else None
                return self._check(statement, test, False, first, [error_name(e) for e in errors])
            case ast.Assert(test=test, msg=message):
                if (message is None or isinstance(message, ast.Constant)) and self._is_taken(test):
                    return None
                return self._check(statement, test, True, message, ["AssertionError"])
        return None

    def _is_taken(self, test: ast.expr) -> bool:
        """Whether Dynamo asserts ``test`` in the graph as it is."""
        return not isinstance(test, (ast.BoolOp, ast.UnaryOp)) and not (
            isinstance(test, ast.Compare) and len(test.ops) > 1
        )

    def _check(
        self, statement: ast.If | ast.Assert, test: ast.expr, truth: bool, message: ast.expr | None, names: list[str]
    ) -> NumberCheck | str | None:
        if not self._is_asked(test):
            return None
        if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(test)):
            return "the test binds a name"
        self._torch = self.facts.writing.spelling("torch", statement)
        found = self._demands(test, truth)
        if isinstance(found, str):
            return found
        why = self.caught.why(statement, names, around=True) or self.facts.ask(Lasting).why(statement)
        if why:
            return why
        demands = tuple(f for f in found if f is not None)
        assumed = self.caught.relied_on(statement, names) or next((f.assumed for f in demands if f.assumed), "")
        assumed = assumed or self.facts.ask(AsSizes).after(statement)
        return NumberCheck(demands, len(demands) < len(found), said(message), assumed)

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

    # --- taking a test apart ----------------------------------------------------------------------------------------

    def _demands(self, test: ast.expr, truth: bool) -> tuple[Fact | None, ...] | str:
        """What has to hold so that ``test`` is ``truth``; None stands for a Python value."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._demands(operand, not truth)
            case ast.BoolOp(op=op, values=values) if isinstance(op, ast.And) is truth:
                return self._all(values, truth)
            case ast.BoolOp(values=values) if self.numbers.needs(test):
                return self._one(values, truth)
            case ast.Compare(ops=[_, _, *_]) if truth and self.numbers.needs(test):
                return self._chain(test)
        if not self.numbers.needs(test):
            return (None,)
        fact = self._fact(test, truth)
        return fact if isinstance(fact, str) else (fact,)

    def _all(self, values: Sequence[ast.expr], truth: bool) -> tuple[Fact | None, ...] | str:
        found: list[Fact | None] = []
        for value in values:
            demands = self._demands(value, truth)
            if isinstance(demands, str):
                return demands
            found += demands
        return tuple(found)

    def _one(self, values: Sequence[ast.expr], truth: bool) -> tuple[Fact | None, ...] | str:
        """One of ``values`` has to be ``truth``: the number, where no Python value before it is."""
        *tests, last = values
        if any(map(self.numbers.needs, tests)) or not self.numbers.needs(last):
            return "several numbers decide together"
        demands = self._demands(last, truth)
        if isinstance(demands, str) or None in demands:
            return "it mixes numbers and Python values" if not isinstance(demands, str) else demands
        before = tuple((t, not truth) for t in tests)
        return tuple(Fact(f.code, f.part, before + f.tests, f.assumed) for f in demands if f is not None)

    def _chain(self, test: ast.Compare) -> tuple[Fact | None, ...] | str:
        """``a < b < c`` as two comparisons, where the middle may be evaluated twice."""
        sides = [test.left, *test.comparators]
        if not all(isinstance(e, (ast.Name, ast.Constant)) for e in sides[1:-1]):
            return f"`{ast.unparse(test)}` would be evaluated twice"
        found: list[Fact | None] = []
        for left, op, right in zip(sides, test.ops, sides[1:], strict=False):
            fact = self._compared(test, left, op, right, True)
            if isinstance(fact, str):
                return fact
            found.append(fact)
        return tuple(found)

    def _fact(self, test: ast.expr, truth: bool) -> Fact | str:
        match test:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(test, left, op, right, truth)
        if self.numbers.is_whole(test):
            return Fact(Code("{0} != 0" if truth else "{0} == 0", (test,)), test)
        if self.numbers.is_flag(test):
            return Fact(Code("{0}" if truth else f"{self._torch}.sym_not({{0}})", (test,)), test)
        return f"`{ast.unparse(test)}` may be something else than an integer"

    def _compared(self, test: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr, truth: bool) -> Fact | str:
        if type(op) not in _OPPOSITE:
            return f"`{ast.unparse(test)}` is no comparison of numbers"
        sides = (left, right)
        spelled = _SPELLED[type(op)] if truth else _OPPOSITE[type(op)]
        exact = truth or isinstance(op, (ast.Eq, ast.NotEq))
        proven = self.numbers.is_number if exact else self.numbers.is_finite
        unsure = [f"`{ast.unparse(side)}`" for side in sides if not proven(side)]
        if exact and all(map(self.sizes.is_shape, sides)):
            unsure = []
        what = "a number" if exact else "a number, and no NaN"
        assumed = " and ".join(f"{side} is {what}" for side in unsure)
        whole = Code("{0}", (test,)) if truth and len(test.ops) == 1 else Code(f"{{0}} {spelled} {{1}}", sides)
        return Fact(whole, test, assumed=assumed)
