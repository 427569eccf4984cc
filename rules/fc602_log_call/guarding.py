"""Where the test for eager code goes that a message gets: one style in one function, and never one inside another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.describing import Describing
from patcher.facts.effects.conditions import Conditions
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.values.module_values import imported
from patcher.rule import Code, Edit, Enclose, Replace

#: Decorators that run a function once for the same arguments, and what tells how often they did.
_CACHING, _ASKED = frozenset({"functools.lru_cache", "functools.cache"}), "cache_info"


class Guarding(Analysis):
    """Messages of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.describing = facts.ask(Describing)
        self.conditions = facts.ask(Conditions)
        self._joining: dict[FunctionNode, bool] = {}

    def edit(self, call: ast.Call, statement: ast.stmt) -> Edit | str | None:
        """What keeps the message out of compiled code, why nothing does, or None where a neighbour's edit does."""
        if not isinstance(statement, ast.Expr) or statement.value is not call:
            return "its value is used"
        if self.facts.compiled_only(statement):
            return "it stands under a test for compiled code"
        reason = self.describing.why_not_silent(statement) or self.describing.why_read(statement)
        reason = reason or self._why_counted(call)
        if reason is not None:
            return reason
        outer = self._outermost(statement)
        function = self.syntax.function_of(call)
        if isinstance(outer, ast.If) and not outer.orelse and function is not None and self._joins(function):
            return self._joined(outer, call) if call is self._first_call(outer) else None
        return self._enclosed(self._whole(statement, outer), call)

    def _why_counted(self, call: ast.Call) -> str | None:
        """Why the function of ``call`` has to run as it is: its cache is asked, which traced code does not fill."""
        function = self.syntax.function_of(call)
        decorators = function.decorator_list if isinstance(function, ast.FunctionDef) else []
        if not any(imported(self.syntax, getattr(d, "func", d)) in _CACHING for d in decorators):
            return None
        asked = any(n.attr == _ASKED for n in self.syntax.by_type[ast.Attribute])
        if asked or self.facts.project.mentions(_ASKED):
            return "what its function keeps for the same arguments is counted, and compiled code keeps nothing"
        return None

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

    # --- style --------------------------------------------------------------------------------------------------------

    def _joins(self, function: FunctionNode) -> bool:
        """Whether every message of ``function`` has a test of its own that the one for eager code can be joined to."""
        if function not in self._joining:
            self._joining[function] = all(self._may_join(s) for s in self._messages(function))
        return self._joining[function]

    def _messages(self, function: FunctionNode) -> Iterator[ast.stmt]:
        """What gets a test in ``function``, and the tests of that kind that it has."""
        for n in self.syntax.subtree(function):
            if self.syntax.function_of(n) is not function:
                continue
            if isinstance(n, ast.If) and self.facts.eager_tests.says_eager(n.test):
                yield n
            if isinstance(n, ast.Expr) and self.describing.is_message(n) and not self.facts.eager_only(n):
                yield self._outermost(n)

    def _may_join(self, s: ast.stmt) -> bool:
        """Whether the line of the ``if`` can take one more part: it is short, and ``or`` needs no brackets."""
        if not isinstance(s, ast.If) or s.orelse:
            return False
        if self.facts.eager_tests.says_eager(s.test):
            return isinstance(s.test, ast.BoolOp)
        one_line = s.test.lineno == s.test.end_lineno == s.lineno
        joined = f"{s.col_offset * ' '}if {self._eager(s)} and {ast.unparse(s.test)}:"
        mixed = isinstance(s.test, ast.BoolOp) and isinstance(s.test.op, ast.Or)
        return one_line and not mixed and len(joined) <= self.facts.line_length and not self.syntax.is_elif(s)

    # --- edits --------------------------------------------------------------------------------------------------------

    def _joined(self, outer: ast.If, call: ast.Call) -> Edit:
        parts = outer.test.values if isinstance(outer.test, ast.BoolOp) else [outer.test]
        holes = (f"{{{i}}}" for i in range(len(parts)))
        return Replace(outer.test, Code(" and ".join((self._eager(call), *holes)), tuple(parts)))

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
