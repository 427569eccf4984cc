"""Which part of what a call is given grows: of an encoder-decoder's past, the decoder's own keys and values alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.values.callees import Callees
from rules.fc305_growing_cache.growth import Growing
from rules.fc305_growing_cache.places import Places

#: The steps to a part: a key or number that is written there; None: any.
Part = tuple[str | int | None, ...]
_DEEPEST = 6


class Parts(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.places = facts.ask(Places)
        self.callees = facts.ask(Callees)
        self.growing = facts.ask(Growing)

    def of(self, call: ast.Call, name: str) -> frozenset[Part]:
        """The parts of ``name``, which ``call`` is given, that grow in functions of this file; empty: not known."""
        found = {p for f in self._called(call) for p in self._grown(call, f, name)}
        return frozenset(p[: max((i + 1 for i, s in enumerate(p) if s is not None), default=0)] for p in found)

    def models(self, call: ast.Call, name: str) -> list[FunctionNode]:
        """The functions of this file that ``call`` may be of, for a part of ``name`` grows there."""
        return [f for f in self._called(call) if self._grown(call, f, name)]

    def _called(self, call: ast.Call) -> list[FunctionNode]:
        called = [f for n in self.callees.of(call) if (f := self.callees.here(n)) is not None]
        forwards = (f for f in self.syntax.functions if f.name == "forward" and self.syntax.method_of(f) is f)
        return called or list(forwards)

    def _grown(self, call: ast.Call, function: FunctionNode, name: str) -> list[Part]:
        return [p for a in self._parameters(call, function, name) for p in self._within(function, a, 0)]

    def _parameters(self, call: ast.Call, function: FunctionNode, name: str) -> Iterator[ast.arg]:
        """The parameters of ``function`` that ``call`` gives ``name`` for."""
        for argument, parameter in self._pairs(call, function):
            if isinstance(argument, ast.Name) and argument.id == name:
                yield parameter

    def _pairs(self, call: ast.Call, function: FunctionNode) -> Iterator[tuple[ast.expr, ast.arg]]:
        own = [*function.args.posonlyargs, *function.args.args]
        own = own[1:] if own and self_name(function) == own[0].arg else own
        if not any(isinstance(a, ast.Starred) for a in call.args):
            yield from zip(call.args, own, strict=False)
        named = {a.arg: a for a in (*own, *function.args.kwonlyargs)}
        yield from ((k.value, named[k.arg]) for k in call.keywords if k.arg in named)

    def _within(self, function: FunctionNode, parameter: ast.arg, depth: int) -> Iterator[Part]:
        """The steps from ``parameter`` to the parameter of a function in which something grows."""
        if depth > _DEEPEST:
            return
        grown = [p for g in self.growing.of(function) for p in self.places.of(g.old)]
        if any(p.root is parameter for p in grown):
            yield ()
        for call in (c for c in self.syntax.own(function, ast.Call) if isinstance(c, ast.Call)):
            for name in self.callees.of(call):
                called = self.callees.here(name)
                if called is None or called is function:
                    continue
                for argument, inner in self._pairs(call, called):
                    for place in self.places.of(argument):
                        if place.root is parameter:
                            steps = tuple(_step(s) for s in place.steps)
                            yield from (steps + more for more in self._within(called, inner, depth + 1))


def _step(step: str) -> str | int | None:
    try:
        found = ast.literal_eval(step[1:-1])
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, str | int) and step.startswith("[") else None
