"""Which comparisons are of a number that was drawn from zero to one with a rate that is zero unless it is given."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.written import defaults

_DRAWING = frozenset({"torch.rand", "torch.rand_like"})
_SAME = frozenset(
    {"item", "to", "cpu", "view", "reshape", "squeeze", "float"}
)  # of a drawn number, below zero as little
_METHODS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Drawn:
    """``kept``: whether the comparison holds at a rate of zero, and else it never does.

    ``draw``: the call that draws, where that is in the comparison; None where a name holds what was drawn. ``above``:
    the ``if`` that begins with the comparison, so that what is drawn may be drawn above it. ``reason``: why the
    comparison cannot be left out, nor the rate be asked for twice; "" where both can.
    """

    rate: ast.expr
    kept: bool
    draw: ast.Call | None = None
    above: ast.If | None = None
    reason: str = ""


class DrawnRates(Analysis):
    """Comparisons of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._unchanged = facts.ask(Unchanged)

    def of(self, compare: ast.Compare) -> Drawn | None:
        """What ``compare`` compares, where the answer is known at a rate of zero, and the rate is that by default."""
        if len(compare.ops) != 1 or not self._is_test(compare):
            return None
        left, op, right = compare.left, compare.ops[0], compare.comparators[0]
        match op:
            case ast.Lt() | ast.GtE():
                drawn, rate, kept = left, right, isinstance(op, ast.GtE)
            case ast.Gt() | ast.LtE():
                drawn, rate, kept = right, left, isinstance(op, ast.LtE)
            case _:
                return None
        if not self._is_drawn(drawn) or not self._is_zero(rate) or self._is_asked(compare, rate):
            return None
        reason = self._unchanged.why_impure(rate) or self._why_needed(drawn)
        return Drawn(rate, kept, self._draw(drawn), self._begun(compare), reason)

    def _why_needed(self, e: ast.expr) -> str:
        """What is done to take the number that is compared out of what was drawn, besides looking; "" if nothing."""
        match e:
            case ast.Subscript(value=value, slice=index):
                return self._unchanged.why_impure(index) or self._why_needed(value)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _SAME:
                given = (*e.args, *(k.value for k in e.keywords))
                return next(filter(None, map(self._unchanged.why_impure, given)), "") or self._why_needed(value)
        return ""

    def _draw(self, e: ast.expr) -> ast.Call | None:
        """The call in ``e`` that draws."""
        match e:
            case ast.Subscript(value=value):
                return self._draw(value)
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _SAME:
                return self._draw(value)
            case ast.Call():
                return e
        return None

    def _begun(self, e: ast.expr) -> ast.If | None:
        """The ``if`` whose test begins with ``e``, in each case."""
        around: ast.AST = self.syntax.parents[e]
        while isinstance(around, ast.UnaryOp) or (isinstance(around, ast.BoolOp) and around.values[0] is e):
            e, around = around, self.syntax.parents[around]
        if not isinstance(around, ast.If) or self.facts.writing.why_not_replaced(around) is not None:
            return None
        outer = self.syntax.parents[around]
        is_elif = isinstance(outer, ast.If) and outer.orelse == [around]
        return None if is_elif else around

    def _is_test(self, e: ast.expr) -> bool:
        """Whether only the truth of ``e`` counts."""
        around = self.syntax.parents[e]
        while isinstance(around, ast.BoolOp) or (isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not)):
            e, around = around, self.syntax.parents[around]
        return isinstance(around, (ast.If, ast.IfExp, ast.While)) and around.test is e

    def _is_drawn(self, e: ast.expr) -> bool:
        """Whether ``e`` is one of the numbers that torch has drawn, from zero to one."""
        match e:
            case ast.Subscript(value=value):
                return self._is_drawn(value)
            case ast.Call(func=ast.Attribute(value=ast.Call() as made, attr="uniform_"), args=[], keywords=[]):
                return (self.syntax.qualified(made.func) or "").startswith("torch.")
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _SAME:
                return self._is_drawn(value)
            case ast.Call():
                return self.syntax.qualified(e.func) in _DRAWING
            case ast.Name():
                bound = self.inference.definitions(e)
                return bool(bound) and all(self._holds_drawn(e, d) for d in bound)
        return False

    def _holds_drawn(self, name: ast.Name, d: Definition) -> bool:
        """Whether ``name`` is bound by ``d`` to what was drawn, and that is still the same."""
        if d.how != "assign" or d.path or d.value is None or not self._is_drawn(d.value):
            return False
        return not self._unchanged.why_changed(name, self.syntax.statement_of(d.node), name)

    def _is_zero(self, rate: ast.expr) -> bool:
        """Whether ``rate`` is a number that is zero unless the constructor, or who calls, is told otherwise."""
        match rate:
            case ast.Name():
                bound = self.inference.definitions(rate)
                given = bool(bound) and all(d.how == "parameter" for d in bound)
                return given and self._defaults_to_zero(self.syntax.function_of(rate), rate.id)
            case ast.Attribute(value=ast.Name(), attr=name):
                cls = self.syntax.class_of(rate)
                return cls is not None and self._made_zero(cls, name)
        return False

    def _made_zero(self, cls: ast.ClassDef, name: str) -> bool:
        """Whether ``cls`` sets ``name`` once, in the constructor, to a parameter whose default is zero."""
        stores = [
            n
            for n in ast.walk(cls)
            if isinstance(n, ast.Attribute) and n.attr == name and not isinstance(n.ctx, ast.Load)
        ]
        if len(stores) != 1:
            return False
        statement, maker = self.syntax.statement_of(stores[0]), self.syntax.function_of(stores[0])
        match statement:
            case ast.Assign(targets=[_], value=ast.Name(id=given)) | ast.AnnAssign(value=ast.Name(id=given)):
                named = isinstance(maker, _METHODS) and maker.name == "__init__"
                return named and self._defaults_to_zero(maker, given)
        return False

    def _defaults_to_zero(self, function: ast.AST | None, name: str) -> bool:
        if not isinstance(function, _METHODS):
            return False
        default = defaults(function.args).get(name)
        number = isinstance(default, ast.Constant) and type(default.value) in (int, float)
        return number and isinstance(default, ast.Constant) and default.value == 0

    def _is_asked(self, compare: ast.Compare, rate: ast.expr) -> bool:
        """Whether a test around ``compare`` asks already whether there is a rate at all."""
        told = ast.dump(rate)
        around = self.syntax.parents[compare]
        while isinstance(around, (ast.BoolOp, ast.UnaryOp, ast.If, ast.IfExp)):
            test = around.test if isinstance(around, (ast.If, ast.IfExp)) else around
            for n in ast.walk(test):
                if n is not compare and ast.dump(n) == told and not self._within(n, compare):
                    return True
            around = self.syntax.parents[around]
        return False

    def _within(self, n: ast.AST, outer: ast.AST) -> bool:
        return any(m is n for m in ast.walk(outer))
