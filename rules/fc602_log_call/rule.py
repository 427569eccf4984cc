"""FC602: a message for people."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from patcher.facts import Facts
from patcher.facts.checks.describing import Describing
from patcher.facts.checks.errors import raises
from patcher.rule import Cost, Example, Finding, Fix, NearMiss, Rule
from rules.fc602_log_call.examples import INVALID, VALID
from rules.fc602_log_call.guarding import Guarding
from rules.fc602_log_call.worth import Worth


class LogCall(Rule):
    """A call that writes a message for people: ``print``, ``logging``, ``warnings.warn``, a logger's method.

    What it does:
        Puts the call, with its neighbours of the same kind, under ``if not torch.compiler.is_compiling():``. Where all
        messages of a function have an ``if`` to themselves, and its line has room, that gets the part instead, in
        front, so that compiled code does not look at the rest of the test. A test that decides about more than the
        message stays as it is, and so does what stands under a test for compiled code. Eager code writes what it wrote.

        Only what costs something in a model that is used as it is meant. A message is reported and not fixed that runs
        when a flag is set that is off by default (a parameter, an attribute, an environment variable), on the way to an
        error, where a property is set or in another thread, and where another break stays in the function whenever the
        message is written. So is one under a test for a call that is not meant to be made: it says that something is
        deprecated, ignored, not supported (or, where an argument asks for it, not available), and neither an argument
        that is left out leads to it nor one that a class of the project hands over itself. The finding names the
        setting of PyTorch that does the same without an edit, as far as the torch that is meant has it.

    Why it breaks compilation:
        Dynamo does not trace output: the graph breaks at the call, each time that it runs. Inside of a loop, a ``try``
        or a context manager of the user's own the whole frame is dropped.

    Fix safety:
        Safe for what the code computes: nothing is left out that may change something. The arguments (and the test, and
        what only prepares the message) may read names, attributes, items and tensors, format them, and call what is
        known to have no effect; with anything else in them, such as ``next(...)`` or a method of the project, the call
        is reported and not fixed. Compiled code writes nothing, so a message that cannot be built, or a warning that
        a filter turns into an error, is no error there. What remembers that it has been told (``if not self.warned:``
        ... ``self.warned = True``, a set of messages) remembers it of compiled code as well: where that comes by first,
        eager code does not tell it later. ``print`` into a file of one's own is not fixed, and so is a
        message right before a ``raise``.

    References:
        PyTorch, "Graph breaks": ``torch._dynamo.config.ignore_logging_functions`` (2.11; 2.6 as
        ``ignore_logger_methods``, for loggers: not called in compiled code) and ``reorderable_logging_functions`` (2.3:
        called after the graph, with tensors, constants and formatted text alone; keyword arguments are lost, and from
        2.14 on a call with some breaks the graph). Measured on 2.13 and 2.14: the first removes the break of ``print``,
        ``warnings.warn`` and loggers, the second not that of ``print(x.shape)``. GraphMend (2025) moves such
        calls out of the graph.
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
        message = f"`{written}` breaks the graph where it runs{_setting(node, written, facts)}"
        edit = facts.ask(Guarding).edit(node, statement)
        if edit is None:  # its neighbour above reports both
            return
        reason = edit if isinstance(edit, str) else facts.ask(Worth).why_not(node)
        if reason is not None:
            yield Finding(node, message, assumption=reason)
        elif not isinstance(edit, str):
            yield Finding(node, message, Fix((edit,), only_break=True))

    invalid: ClassVar[tuple[Example, ...]] = INVALID
    valid: ClassVar[tuple[NearMiss, ...]] = VALID


def _setting(call: ast.Call, written: str, facts: Facts) -> str:
    """What PyTorch itself has for the message, on the torch that is meant."""
    target = facts.settings.target_torch
    config = "torch._dynamo.config"
    method = isinstance(call.func, ast.Attribute) and facts.ask(Describing).is_method(call)
    if method and isinstance(call.func, ast.Attribute) and facts.ask(Describing).is_kept(call.func.attr):
        return ""  # left out, it would not keep what it is told
    if method and isinstance(call.func, ast.Attribute) and call.func.attr in _STANDARD:
        written = f"logging.Logger.{call.func.attr}"
    if target >= (2, 11):
        return f"; `{config}.ignore_logging_functions.add({written})` leaves it out without an edit"
    if method:
        return f"; `{config}.ignore_logger_methods.add({written})` leaves it out without an edit" * (target >= (2, 6))
    if target >= (2, 3):
        return f"; `{config}.reorderable_logging_functions.add({written})` lets it run after the graph without an edit"
    return ""


#: The methods of Python's own loggers.
_STANDARD = frozenset("debug info warning warn error exception critical fatal log".split())
