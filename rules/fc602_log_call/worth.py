"""Whether keeping a message out of compiled code gains anything."""

from __future__ import annotations

import ast
import re

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.running.frequency import Frequency, Often
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import last_name
from patcher.facts.syntax.written import defaults, is_none, short

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: What a message says of a call that is not meant to be made.
_MISUSE = re.compile(
    r"deprecat|ignored|not expected|unexpected|supported|ineffective|no effect|incompatible|invalid|unused|cannot|"
    r"can't|unable to|should (be|have|not)|must (be|have|not)|will be removed|please|does not support|incorrect|"
    r"not implemented|has been renamed|disabling"
)
#: What it says of something that was asked for and cannot be had.
_UNAVAILABLE = re.compile(r"not available|unavailable|not installed")
_OUTDATED = frozenset({"DeprecationWarning", "FutureWarning", "PendingDeprecationWarning"})


class Worth(Analysis):
    """Messages of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.frequency = facts.ask(Frequency)

    def why_not(self, call: ast.Call) -> str | None:
        """None when ``call``, which writes a message, may break the graph of a model that is used as it is meant."""
        reach = self.frequency.of(call)
        if reach.often in (Often.ONCE, Often.FLAG, Often.ERROR):
            return f"it runs {reach}"
        if (misused := self._why_misused(call)) is not None:
            return misused
        function = self.syntax.function_of(call)
        if function is None:
            return None
        if any(last_name(d) in ("setter", "deleter") for d in function.decorator_list):
            return "it runs when somebody sets a property"
        return None

    def _why_misused(self, call: ast.Call) -> str | None:
        """Why nobody sees the message whose calls are as they are meant to be: it tells of misuse, under a test.

        Not so where the tests on the way hold because an argument is left out: then the plainest call gets the message;
        nor where the project itself hands over the argument that the message is about.
        """
        misuse = self._tells_of_misuse(call)
        if not misuse and _UNAVAILABLE.search(_said(call)) is None:
            return None
        decisive: ast.expr | None = None
        decided = True
        plainest: list[bool | None] = []
        child: ast.AST = call
        for parent in self.syntax.ancestors(call):
            if isinstance(parent, _FUNCTIONS):
                break
            if isinstance(parent, ast.If) and child is not parent.test:
                plainest.append(self._when_left_out(parent.test, child in parent.body))
                if decisive is None:
                    decisive, decided = parent.test, child in parent.body
            child = parent
        if decisive is None or (True in plainest and False not in plainest):
            return None
        asked = self._when_left_out(decisive, decided) is False
        if (asked and self._is_handed(decisive)) or not (asked or misuse):
            return None
        return f"it tells of a call that is not meant to be made (`{short(decisive)}`)"

    def _is_handed(self, test: ast.expr) -> bool:
        """Whether a call in the project gives a method what ``test`` asks for: its own models get the message."""
        names = [n for n in ast.walk(test) if isinstance(n, ast.Name) and self._is_unset(n)]
        function = self.syntax.method_of(test)
        if function is None or self_name(function) is None:
            return False
        places = [a.arg for a in [*function.args.posonlyargs, *function.args.args][1:]]
        given = {(function.name, n.id) for n in names}
        given |= {(function.name, str(places.index(n.id))) for n in names if n.id in places}
        return not given.isdisjoint(self.project.hands)

    def _tells_of_misuse(self, call: ast.Call) -> bool:
        categories = {last_name(n) for a in (*call.args, *(k.value for k in call.keywords)) for n in ast.walk(a)}
        return _MISUSE.search(_said(call)) is not None or not categories.isdisjoint(_OUTDATED)

    def _when_left_out(self, test: ast.expr, outcome: bool) -> bool | None:
        """Whether ``test`` has that outcome when arguments that are None by default are left out; None: not known.

        What such an argument decides in a part counts for the whole, as long as no other one is against it.
        """
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._when_left_out(operand, not outcome)
            case ast.BoolOp(op=op, values=values):
                found = [self._when_left_out(v, outcome) for v in values]
                if isinstance(op, ast.And) is outcome:
                    return False if False in found else True if True in found else None
                return True if True in found else False if None not in found else None
            case ast.Compare(left=ast.Name() as name, ops=[ast.Is() | ast.IsNot() as op], comparators=[other]):
                if not is_none(other) or not self._is_unset(name):
                    return None
                return isinstance(op, ast.Is) is outcome and not self._is_always_given(name)
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name() as name, _]) | (ast.Name() as name):
                return not outcome if self._is_unset(name) else None
        return None

    def _is_always_given(self, name: ast.Name) -> bool:
        """Whether the models of this file give their layers that argument by name, and none of them leaves it out.

        What hands on its own argument of that name leaves it to its callers.
        """
        function = self.syntax.method_of(name)
        if function is None or function.name != "forward":
            return False
        calls = [c for c in self.syntax.by_type[ast.Call] if not (last_name(c.func) or "")[:1].isupper()]  # no class
        given = [k.value for c in calls for k in c.keywords if k.arg == name.id]
        own = [v for v in given if not (isinstance(v, ast.Name) and self._is_unset(v))]
        return bool(own) and not any(map(is_none, own))

    def _is_unset(self, name: ast.Name) -> bool:
        found = list(self.inference.definitions(name))
        if len(found) != 1 or found[0].how != "parameter":
            return False
        function = self.syntax.parents[self.syntax.parents[found[0].node]]
        default = defaults(function.args).get(name.id) if isinstance(function, _FUNCTIONS) else None
        return default is not None and is_none(default)


def _said(call: ast.Call) -> str:
    """The text in ``call``, in small letters."""
    return " ".join(n.value for n in ast.walk(call) if isinstance(n, ast.Constant) and isinstance(n.value, str)).lower()
