"""FC602: a message for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.checks.errors import raises
from patcher.rule import Code, Cost, Edit, Enclose, Example, Finding, Fix, NearMiss, Replace, Rule
from rules.fc602_log_call.describing import Describing
from rules.fc602_log_call.examples import INVALID, VALID


class LogCall(Rule):
    """A call that writes a message for people: ``print``, ``logging``, ``warnings.warn``, a logger's method.

    What it does:
        Puts the call, with its neighbours of the same kind, under ``if not torch.compiler.is_compiling():``. Where an
        ``if`` has nothing else to do, its test gets that part, in front, so that compiled code does not look at the
        rest of the test. Eager code writes what it wrote.

    Why it breaks compilation:
        Dynamo does not trace output: the graph ends at the call, each time that it runs. Inside of a loop, a ``try`` or
        a context manager of the user's own the whole frame is dropped.

    Fix safety:
        Safe for what the code computes: nothing is left out that may change something. The arguments (and the test, and
        what only prepares the message) may read names, attributes, items and tensors, format them, and call what is
        known to have no effect; with anything else in them, such as ``next(...)`` or a method of the project, the call
        is reported and left alone. Compiled code writes nothing, so a message that cannot be built, or a warning that
        a filter turns into an error, is no error there. ``print`` into a file of one's own is left alone, and so is a
        message right before a ``raise``.

    References:
        PyTorch, "Graph breaks": ``torch._dynamo.config.ignore_logging_functions`` (not called in compiled code) and
        ``reorderable_logging_functions`` (called after the graph) do the same without an edit. GraphMend (2025) moves
        such calls out of the graph.
    """

    code: ClassVar[str] = "FC602"
    name: ClassVar[str] = "log-call"
    triggers: ClassVar[tuple[bytes, ...]] = (b"print", b"log", b"LOG", b"warn", b"write(")
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        """Report ``node`` when it writes a message in code that gets compiled."""
        assert isinstance(node, ast.Call)
        written = facts.ask(Describing).written_by(node)
        if written is None:
            return
        statement = facts.syntax.statement_of(node)
        if raises(facts.syntax.following(statement)):
            return
        message = f"`{written}` ends the graph where it runs ({_CONFIGURATION})"
        edit = _edit(node, statement, facts)
        if edit is None:  # its neighbour above reports both
            return
        if isinstance(edit, str):
            yield Finding(node, message, assumption=edit)
        else:
            yield Finding(node, message, Fix((edit,)))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


_CONFIGURATION = "`torch._dynamo.config.ignore_logging_functions` leaves it out without an edit"


def _edit(call: ast.Call, statement: ast.stmt, facts: Facts) -> Edit | str | None:
    """What keeps the message out of compiled code, why nothing does, or None where a neighbour's edit does."""
    if not isinstance(statement, ast.Expr) or statement.value is not call:
        return "its value is used"
    eager = f"not {facts.writing.spelling('torch.compiler', call)}.is_compiling()"
    describing = facts.ask(Describing)
    if (reason := describing.why_not_silent(statement) or describing.why_read(statement)) is not None:
        return reason
    outer: ast.stmt = statement
    while isinstance(parent := facts.syntax.parents[outer], (ast.If, ast.For)):
        if describing.why_not_silent(parent) is not None:
            break
        outer = parent
    if isinstance(outer, ast.If) and not outer.orelse:
        if call is not _first_call(outer, facts):
            return None
        return Replace(outer.test, Code(f"{eager} and {{0}}", (outer.test,)))
    block = facts.syntax.block_of(outer)
    at = block.index(outer)
    first = at
    while first and describing.is_message(block[first - 1]):
        first -= 1
    last = at
    while last + 1 < len(block) and describing.is_message(block[last + 1]):
        last += 1
    if outer is not statement:
        first = last = at
    if call is not _first_call(block[first], facts):
        return None
    if not facts.syntax.alone(block[first]) and not (first == last and len(block) == 1):
        return "the line holds more than this statement"
    if not facts.syntax.alone(block[last]) and first != last:
        return "the line holds more than this statement"
    return Enclose(tuple(block[first : last + 1]), Code(f"if {eager}:"))


def _first_call(statement: ast.stmt, facts: Facts) -> ast.Call | None:
    """The first call in ``statement`` that writes a message."""
    calls = [
        n for n in ast.walk(statement) if isinstance(n, ast.Call) and facts.ask(Describing).written_by(n) is not None
    ]
    return min(calls, key=lambda c: (c.lineno, c.col_offset), default=None)
