"""Bars that show how far a loop is, and whether anything but people needs them."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.checks.describing import Describing
from patcher.facts.syntax.written import short

_MODULES = ("tqdm", "tqdm.std", "tqdm.auto", "tqdm.autonotebook", "tqdm.notebook", "tqdm.rich")
_BARS = frozenset(f"{module}.tqdm" for module in _MODULES)
_COUNTED = frozenset(f"{module}.trange" for module in _MODULES)
#: Builtins that go through what they are given.
_GOING_THROUGH = frozenset("enumerate zip list tuple".split())
#: Methods that change what is shown, and give nothing back that is used.
_SHOWING = frozenset(
    "set_description set_description_str set_postfix set_postfix_str update refresh close clear display write".split()
)


@dataclass(frozen=True)
class Bar:
    """A bar, ``call``, over ``items``, or over ``range(*items)`` where ``counted``.

    ``told``: where the bar is told something, each in a statement of its own; ``kind``: how its class is spelled there.
    ``reason``: why compiled code cannot do without it, or "".
    """

    call: ast.Call
    items: tuple[ast.expr, ...]
    counted: bool
    told: tuple[ast.Name, ...] = ()
    kind: str = ""
    reason: str = ""


class Bars(Analysis):
    """Those of one module."""

    def of(self, call: ast.Call) -> Bar | None:
        """The bar that ``call`` makes, None where it makes none."""
        what = self.syntax.qualified(call.func) or ""
        if what not in _BARS | _COUNTED:
            return None
        counted, items = what in _COUNTED, call.args[:1]
        rest: list[ast.expr] = [*call.args[1:], *(k.value for k in call.keywords)]
        if counted:
            items, rest = call.args, [k.value for k in call.keywords]
        named = [k.value for k in call.keywords if k.arg == "iterable"]
        if not items and named:
            items, rest = named, [e for e in rest if e is not named[0]]
        told, reason = self._used(call)
        kind = self.facts.writing.spelled(f"{what.rpartition('.')[0]}.tqdm", call) or ""
        describing = self.facts.ask(Describing)
        reason = (
            self._why_nothing(call, items, counted)
            or reason
            or next(filter(None, map(describing.why_changing, rest)), "")
            or next(filter(None, map(describing.why_counted, items)), "")  # a bar asks how many there are
            or ("the class of the bar has no name here" if told and not kind else "")
        )
        return Bar(call, tuple(items), counted, told, kind, reason)

    def _why_nothing(self, call: ast.Call, items: list[ast.expr], counted: bool) -> str:
        """Why there is nothing that can be gone through without the bar; "" when there is."""
        if not items or any(isinstance(a, ast.Starred) for a in call.args):
            return "there is nothing that it goes through"
        if counted and not self.syntax.is_builtin(ast.Name("range")):
            return "`range` may be another function here"
        if isinstance(items[0], ast.GeneratorExp) and items[0].end_col_offset == call.end_col_offset:
            return "the generator stands in the brackets of the call"
        inner = (n for e in items for n in ast.walk(e) if isinstance(n, ast.Call))
        if any(self.syntax.qualified(n.func) in _BARS | _COUNTED for n in inner):
            return "it goes through another bar"
        return ""

    def _used(self, call: ast.Call) -> tuple[tuple[ast.Name, ...], str]:
        """Where what ``call`` makes is told something, and what else is done with it."""
        parent = self.syntax.parents[call]
        if self._is_gone_through(call):
            return (), ""
        named = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
        reads = self.readers(named) if isinstance(named, ast.Name) else None
        if reads is None:
            return (), "more is done with it than to go through it"
        told: list[ast.Name] = []
        for read in reads:
            if {d.node for d in self.inference.definitions(read)} != {named}:
                return (), f"`{read.id}` may be something else"
            if self._is_gone_through(read):
                continue
            statement = self.syntax.statement_of(read)
            if not isinstance(statement, ast.Expr) or not self._is_told(statement.value, read):
                return (), f"`{short(statement)}` does more with it than to go through it"
            if not self.syntax.alone(statement) and len(self.syntax.block_of(statement)) > 1:
                return (), "the line where it is told something holds more than that"
            told.append(read)
        return tuple(told), ""

    def _is_gone_through(self, e: ast.expr) -> bool:
        """Whether a loop, or a builtin, takes the items of ``e``, and nothing else has it."""
        parent = self.syntax.parents[e]
        match parent:
            case ast.For(iter=items) | ast.comprehension(iter=items, is_async=0):
                return items is e
            case ast.Call(keywords=[]):
                return self.syntax.builtin(parent) in _GOING_THROUGH and e in parent.args
        return False

    def _is_told(self, e: ast.expr, bar: ast.Name) -> bool:
        """Whether ``e`` calls a method of ``bar`` that shows something, with what is only looked at."""
        match e:
            case ast.Call(func=ast.Attribute(value=of, attr=name)) if of is bar and name in _SHOWING:
                given = [*e.args, *(k.value for k in e.keywords)]
                return all(self.facts.ask(Describing).why_changing(g) is None for g in given)
        return False
