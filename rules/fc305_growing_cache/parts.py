"""Which part of what a call is given grows: of an encoder-decoder's past, the decoder's own keys and values alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.project.handed import is_kept
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.syntax.written import all_parameters
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

    def reaches(self, function: FunctionNode) -> bool:
        """Whether what grows may be handed to ``function``; not, where calls in this file give it other parts alone."""
        own = [p for p in all_parameters(function.args) if is_kept(p.arg)]
        if any(True for p in own for _ in self._within(function, p, 0)):
            return True
        found = False
        for call in (c for c in self.syntax.by_type[ast.Call] if isinstance(c, ast.Call)):
            if any(self.callees.here(n) is function for n in self.callees.of(call)):
                found = True
                given = [argument for argument, parameter in self._pairs(call, function) if parameter in own]
                if any(self._may_grow(argument) for argument in given):
                    return True
        return not found

    def twice(self, function: FunctionNode) -> str:
        """What of that which grows ``function`` hands on, or joins to, more than once; "" for nothing.

        A tensor can be joined to several others, and stays as it is; a buffer is written.
        """
        grown = [(g.node, g.old) for g in self.growing.of(function) if g.how != "listed"]
        handed = [(call, a) for call in self.syntax.own(function, ast.Call) for a in self._handed(call, function)]
        once: set[str] = set()
        for at, what in (*grown, *handed):
            text = ast.unparse(what)
            if text in once or not self._is_new_in_each_turn(at, what, function):
                return f"`{text}` grows more than once"
            once.add(text)
        return ""

    def _handed(self, call: ast.AST, function: FunctionNode) -> Iterator[ast.expr]:
        """The arguments of ``call`` that are parts of parameters of ``function``, in which something grows there."""
        assert isinstance(call, ast.Call)
        here = [f for name in self.callees.of(call) if (f := self.callees.here(name)) is not None]
        for called in here:
            for argument, inner in self._pairs(call, called) if called is not function else ():
                root = any(isinstance(p.root, ast.arg) for p in self.places.of(argument))
                if root and any(True for _ in self._within(called, inner, 0)) and not self._own_part(called, inner, 0):
                    yield argument

    def _own_part(self, function: FunctionNode, parameter: ast.arg, depth: int) -> bool:
        """Whether each instance takes a part of its own: ``past[self.layer]``."""
        places = [p for g in self.growing.of(function) for p in self.places.of(g.old) if p.root is parameter]
        inner = [
            (called, to)
            for call in self.syntax.own(function, ast.Call) if isinstance(call, ast.Call)
            for name in self.callees.of(call) if (called := self.callees.here(name)) is not None
            for argument, to in self._pairs(call, called)
            if any(p.root is parameter and not p.steps for p in self.places.of(argument))
            if any(True for _ in self._within(called, to, depth + 1))
        ]  # fmt: skip
        if depth > _DEEPEST or not (places or inner):
            return False
        own = f"[{self_name(function)}."
        return all(p.steps and p.steps[0].startswith(own) for p in places) and all(
            self._own_part(called, to, depth + 1) for called, to in inner
        )

    def _is_new_in_each_turn(self, at: ast.AST, what: ast.expr, function: FunctionNode) -> bool:
        """Whether ``what`` is another one in each turn of the loops around ``at``: a name in it gets a value there."""
        names = {n.id for n in ast.walk(what) if isinstance(n, ast.Name)}
        for around in self.syntax.ancestors(at):
            if around is function:
                return True
            if isinstance(around, ast.For | ast.While):
                bound = {n.id for n in ast.walk(around) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
                if not names & bound:
                    return False
            elif isinstance(around, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
                return False
        return True

    def _may_grow(self, argument: ast.expr) -> bool:
        """Whether what grows is in ``argument``, a part of a parameter, or ``argument`` in it."""
        places = self.places.of(argument)
        for place in places:
            around = self.syntax.function_of(argument)
            if not isinstance(place.root, ast.arg) or around is None:
                return True
            steps = tuple(_step(s) for s in place.steps)
            paths = list(self._within(around, place.root, 0))
            if not paths or any(_meet(steps, path) for path in paths):
                return True
        return not places

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


def _meet(a: Part, b: Part) -> bool:
    """Whether one of the two may lead to the other."""
    return all(x is None or y is None or x == y for x, y in zip(a, b, strict=False))


def _step(step: str) -> str | int | None:
    try:
        found = ast.literal_eval(step[1:-1])
    except (ValueError, SyntaxError):
        return None
    return found if isinstance(found, str | int) and step.startswith("[") else None
