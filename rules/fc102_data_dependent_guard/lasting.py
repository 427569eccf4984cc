"""What stays behind when a check fails: compiled code raises in the graph, and keeps nothing of what Python has set.

Python state that code sets is written back when its graph has come to its end, and what stands before the ``raise`` is
not in the graph at all. Whoever takes the error from outside would go on with another object.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from itertools import takewhile

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.log_calls import log_call
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.effects.writes import How, Write, Writes
from patcher.facts.flow.definitions import Definition
from patcher.facts.flow.graph import is_quiet
from patcher.facts.project.protected import TRIES, WITHS
from patcher.facts.syntax.classes import INITIALISERS
from patcher.facts.syntax.tree import FunctionNode, last_name, walk
from patcher.facts.values.callees import Callees
from patcher.facts.values.module_values import Bindings
from patcher.facts.values.types import Kind

#: How far up calls are followed.
_DEPTH = 4
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Lasting(Analysis):
    """Answers for the guards of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.writes = facts.ask(Writes)
        self.unchanged = facts.ask(Unchanged)
        self.callees = facts.ask(Callees)
        self.bindings = Bindings(self.syntax)

    def why(self, guard: ast.stmt) -> str:
        """What is set above ``guard`` or in it, and others see after its error; "" when nothing is."""
        function = self.syntax.function_of(guard)
        if function is None:
            return ""
        told = walk(guard.msg) if isinstance(guard, ast.Assert) and guard.msg is not None else ()
        body = guard.body if isinstance(guard, ast.If) else []
        inside = next(self._kept((*self._running(body), *told), function), None)
        if inside is not None:
            return f"{inside.told} is there to be seen after the error: compiled code would not do it"
        places = list(self._places(guard, function, frozenset()))
        if (left := next(filter(None, (self._left(*place) for place in places)), None)) is not None:
            return f"{left.told} runs when the error passes: compiled code would not run it then"
        set_above = (w for at, f in places for w in self._kept(self._above(at, f), f, sets_only=True))
        if (above := next(set_above, None)) is not None:
            return f"{above.told} above it is kept when the error is raised: compiled code would drop it"
        return ""

    def _places(
        self, at: ast.stmt, function: FunctionNode, seen: frozenset[FunctionNode]
    ) -> Iterator[tuple[ast.stmt, FunctionNode]]:
        """``at``, and the statements of this file that have called its function when it runs, with their functions."""
        yield at, function
        for call in self._calls(function) if function not in seen and len(seen) <= _DEPTH else ():
            caller = self.syntax.function_of(call)
            if caller is not None and caller.name not in INITIALISERS and self.facts.reached(call):
                yield from self._places(self.syntax.statement_of(call), caller, seen | {function})

    def _left(self, at: ast.stmt, function: FunctionNode) -> Write | None:
        """What an error of ``at`` runs on its way through ``function``."""
        for parent in takewhile(lambda n: n is not function, self.syntax.ancestors(at)):
            if isinstance(parent, TRIES):
                found = next(self._kept(self._running(parent.finalbody), function), None)  # type: ignore[attr-defined]
            elif isinstance(parent, WITHS):
                seeing = next((i.context_expr for i in parent.items if self._sees(i.context_expr)), None)
                found = Write(How.RUNS, seeing) if seeing is not None else None
            else:
                continue
            if found is not None:
                return found
        return None

    def _sees(self, entered: ast.expr) -> bool:
        """Whether the context manager ``entered``, which torch does not have, may act when an error leaves its body."""
        called = entered.func if isinstance(entered, ast.Call) else entered
        return not ((self.syntax.qualified(called) or "").startswith("torch.") or is_quiet(entered, self.syntax))

    def _calls(self, function: FunctionNode) -> Iterator[ast.Call]:
        """The calls in this file that run ``function``, as far as can be seen."""
        layer = function.name in ("forward", "__call__")
        for call in self.syntax.by_type[ast.Call]:
            assert isinstance(call, ast.Call)
            if (layer or last_name(call.func) == function.name) and any(
                self.callees.here(name) is function for name in self.callees.of(call)
            ):
                yield call

    def _running(self, body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
        """The nodes of ``body``, without those of messages for people."""
        for s in body:
            call = s.value if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) else None
            if call is None or log_call(call, self.syntax, self.bindings) is None:
                yield from walk(s)

    def _above(self, guard: ast.stmt, function: FunctionNode) -> Iterator[ast.AST]:
        """What sets attributes in ``function``, or writes, and may have run when the test of ``guard`` is made."""
        place = (guard.lineno, guard.col_offset)
        turns = {n for p in self.syntax.ancestors(guard) if isinstance(p, _LOOPS) for n in walk(p)}
        for n in walk(function):
            if not isinstance(n, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.AugAssign)):
                continue
            stored = isinstance(getattr(n, "ctx", None), (ast.Store, ast.Del))
            if (
                (stored or isinstance(n, (ast.Call, ast.AugAssign)))
                and ((n.lineno, n.col_offset) < place or n in turns)
                and not self.facts.eager_only(n)
            ):
                yield n

    def _kept(self, nodes: Iterable[ast.AST], function: FunctionNode, *, sets_only: bool = False) -> Iterator[Write]:
        """What ``nodes`` change that outlives the call of ``function``.

        ``sets_only``: without calls of what is not read, and of memory and containers what others may hold.
        """
        shared = {name for n in walk(function) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        for n in nodes:
            for w in self.writes.of(n):
                match w.how:
                    case How.BINDS:
                        lasts = w.name in shared
                    case How.RUNS:
                        lasts = not sets_only and not isinstance(self.syntax.parents.get(n), ast.Raise)
                    case _:
                        lasts = not (w.objects and all(map(self._is_made_here, w.objects)))
                        if lasts and sets_only and w.how is not How.SETS:  # backends write at the end of a graph
                            lasts = not w.objects or any(self.unchanged.may_be_shared(o) for o in w.objects)
                        elif lasts and sets_only and isinstance(n, ast.Call) and not w.objects:
                            lasts = any(map(self._sets, self.callees.of(n)))
                if lasts:
                    yield w

    def _sets(self, function: str) -> bool:
        """Whether the dotted ``function`` itself sets attributes, of more than the object that it is to make."""
        summary = self.project.function(function)
        made = function.rpartition(".")[2] in INITIALISERS
        return summary is not None and not made and bool(summary.does.own or summary.does.sets)

    def _is_made_here(self, e: ast.expr, seen: set[Definition] | None = None) -> bool:
        """Whether ``e`` is an object that this call has made: a container, an instance, what a layer gives."""
        match e:
            case (
                ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.JoinedStr()
            ):
                return True
            case ast.Call(func=func):
                what = self.syntax.qualified(func) or ""
                made = last_name(func).lstrip("_")[:1].isupper() or what.startswith("torch.")
                layer = self.project.is_module_class(self.callees.class_of(func) or "")
                layer = layer or self.inference.of(func).kind is Kind.MODULE
                return made or (layer and not self.callees.bodies(e))
            case ast.Name():
                found, seen = self.inference.definitions(e), set() if seen is None else seen
                more = found - seen
                seen |= found
                return bool(found) and all(self._binds_made(d, seen) for d in more)
        return False

    def _binds_made(self, d: Definition, seen: set[Definition]) -> bool:
        value, path = d.part
        if d.how != "assign" or value is None:
            return False
        return not path and self._is_made_here(value, seen)
