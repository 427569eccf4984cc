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

    ``loop``: the statement whose items they are, where they are that directly; ``told``: the statements that tell the
    bar something. ``reason``: why compiled code cannot do without it; "" where it can.
    """

    call: ast.Call
    items: tuple[ast.expr, ...]
    counted: bool
    loop: ast.For | None = None
    told: tuple[ast.Expr, ...] = ()
    reason: str = ""


class Bars(Analysis):
    """Those of one module."""

    def of(self, call: ast.Call) -> Bar | None:
        """The bar that ``call`` makes, None where it makes none."""
        what = self.syntax.qualified(call.func)
        if what not in _BARS | _COUNTED:
            return None
        counted, items = what in _COUNTED, call.args[:1]
        rest: list[ast.expr] = [*call.args[1:], *(k.value for k in call.keywords)]
        if counted:
            items, rest = call.args, [k.value for k in call.keywords]
        named = [k.value for k in call.keywords if k.arg == "iterable"]
        if not items and named:
            items, rest = named, [e for e in rest if e is not named[0]]
        loop, told, reason = self._used(call)
        if not items or any(isinstance(a, ast.Starred) for a in call.args):
            reason = "there is nothing that it goes through"
        elif counted and not self.syntax.is_builtin(ast.Name("range")):
            reason = "`range` may be another function here"
        reason = reason or next(filter(None, map(self.facts.ask(Describing).why_changing, rest)), "")
        return Bar(call, tuple(items), counted, loop, told, reason)

    def _used(self, call: ast.Call) -> tuple[ast.For | None, tuple[ast.Expr, ...], str]:
        """Which loop goes through ``call``, what tells it something, and what else is done with it."""
        parent = self.syntax.parents[call]
        if self._is_gone_through(call):
            return (parent if isinstance(parent, ast.For) else None), (), ""
        named = parent.targets[0] if isinstance(parent, ast.Assign) and len(parent.targets) == 1 else None
        reads = self.readers(named) if isinstance(named, ast.Name) else None
        if reads is None:
            return None, (), "more is done with it than to go through it"
        told: list[ast.Expr] = []
        for read in reads:
            if {d.node for d in self.inference.definitions(read)} != {named}:
                return None, (), f"`{read.id}` may be something else"
            if self._is_gone_through(read):
                continue
            statement = self.syntax.statement_of(read)
            if not isinstance(statement, ast.Expr) or not self._is_told(statement.value, read):
                return None, (), f"`{short(statement)}` does more with it than to go through it"
            told.append(statement)
        return None, tuple(told), ""

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
