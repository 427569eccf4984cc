"""Where the test for eager code goes that a message gets: one style in one function, and never one inside another."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.describing import Describing
from patcher.facts.effects.conditions import Conditions
from patcher.rule import Code, Edit, Enclose


class Guarding(Analysis):
    """Messages of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.describing = facts.ask(Describing)
        self.conditions = facts.ask(Conditions)

    def edit(self, call: ast.Call, statement: ast.stmt) -> Edit | str | None:
        """What keeps the message out of compiled code, why nothing does, or None where a neighbour's edit does."""
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            return "its value is used"
        if self.facts.compiled_only(statement):
            return "it stands under a test for compiled code"
        reason = self.describing.why_not_silent(statement) or self.describing.why_read(statement)
        if reason is not None:
            return reason
        return self._enclosed(self._whole(statement, self._outermost(statement)), call)

    def _eager(self, at: ast.AST) -> str:
        return f"not {self.facts.writing.spelling('torch.compiler', at)}.is_compiling()"

    def _outermost(self, statement: ast.stmt) -> ast.stmt:
        """The statement around ``statement`` that does nothing but write messages."""
        outer = statement
        while isinstance(parent := self.syntax.parents[outer], (ast.If, ast.For)):
            if self.describing.why_not_silent(parent) is not None:
                break
            outer = parent
        return outer

    def _whole(self, statement: ast.stmt, outer: ast.stmt) -> ast.stmt:
        """What of ``outer`` has to stay uncompiled: all, where more than the messages would break the graph."""
        inner = [n for n in ast.walk(outer) if isinstance(n, ast.stmt)]
        plain = all(
            (isinstance(s, ast.If) and not s.orelse and not self.conditions.reads_data(s.test))
            or self.describing.is_message(s)
            for s in inner
        )
        return statement if plain else outer

    def _enclosed(self, outer: ast.stmt, call: ast.Call) -> Edit | str | None:
        block = self.syntax.block_of(outer)
        first = last = block.index(outer)
        several = self.describing.is_message(outer)
        while several and first and self.describing.is_message(block[first - 1]):
            first -= 1
        if call is not self._first_call(block[first]):
            return None
        while several and last + 1 < len(block) and self.describing.is_message(block[last + 1]):
            last += 1
        if not self.syntax.alone(block[first]) and not (first == last and len(block) == 1):
            return "the line holds more than this statement"
        if not self.syntax.alone(block[last]) and first != last:
            return "the line holds more than this statement"
        return Enclose(tuple(block[first : last + 1]), Code(f"if {self._eager(call)}:"))

    def _first_call(self, statement: ast.stmt) -> ast.Call | None:
        """The first call in ``statement`` that writes a message."""
        calls = [
            n for n in ast.walk(statement) if isinstance(n, ast.Call) and self.describing.written_by(n) is not None
        ]
        return min(calls, key=lambda c: (c.lineno, c.col_offset), default=None)
