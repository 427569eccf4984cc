"""How often a line is reached in one call of what gets compiled, as far as the source tells."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.errors import raises
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import INITIALISERS
from patcher.facts.syntax.tree import FunctionNode, last_name
from patcher.facts.syntax.written import defaults
from patcher.facts.tables import host_api
from patcher.facts.values.module_values import CONTAINERS

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: Words of what holds the layers of a model, where nothing else tells.
_LAYERS = frozenset("layers blocks stages".split())


class Often(enum.IntEnum):
    """From what costs most to what costs least. UNKNOWN: no module's ``forward`` and nothing compiled reaches it."""

    TURN = 0
    LAYER = 1
    CALL = 2
    UNKNOWN = 3
    SOME = 4
    ONCE = 5
    FLAG = 6
    ERROR = 7


_SAID = {
    Often.TURN: "each turn of a loop",
    Often.LAYER: "each layer",
    Often.CALL: "each call",
    Often.UNKNOWN: "",
    Often.SOME: "some calls",
    Often.ONCE: "only when a cache is filled",
    Often.FLAG: "only when a flag is set",
    Often.ERROR: "only on the way to an error",
}


@dataclass(frozen=True)
class Reach:
    """``often``, and the ``flags`` that are not so by default, as the source calls them.

    ONCE: the attribute that is set then.
    """

    often: Often
    flags: frozenset[str] = frozenset()

    def __str__(self) -> str:
        if self.often is Often.FLAG and self.flags:
            return f"only when {' or '.join(sorted(self.flags))} is set"
        if self.often is Often.ONCE and self.flags:
            return f"only until {' or '.join(sorted(self.flags))} is set"
        return _SAID[self.often]

    def inside(self, outer: Reach) -> Reach:
        """The same for a part of what is itself reached as ``outer`` says: conditions limit, loops multiply."""
        if max(self.often, outer.often) > Often.CALL:
            return max(outer, self, key=lambda r: r.often)
        return min(outer, self, key=lambda r: r.often)


_EACH = Reach(Often.CALL)


@dataclass(frozen=True)
class _Flag:
    """What a test is as long as nobody sets one of ``names``."""

    value: bool
    names: frozenset[str] = frozenset()


class Frequency(Analysis):
    """Lines of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._asked: set[ast.expr] = set()
        self._functions: dict[FunctionNode, Reach] = {}
        self._open: set[FunctionNode] = set()

    def of(self, node: ast.AST) -> Reach:
        """How often ``node`` is reached."""
        function = node if isinstance(node, _FUNCTIONS) else self.syntax.function_of(node)
        if function is None or not self.facts.reached(function):
            return Reach(Often.UNKNOWN)
        return self._within(node, function).inside(self.function(function))

    def function(self, function: FunctionNode) -> Reach:
        """How often ``function``, which compiled code reaches, is called: as its calls are, where all are known."""
        if function not in self._functions:
            if function in self._open:
                return _EACH
            self._open.add(function)
            calls = self.inference.calls_of(function)
            reached = [r for r in map(self.of, calls) if r.often is not Often.UNKNOWN]
            found = min(reached, key=lambda r: r.often) if reached else self._layer(function)
            self._open.discard(function)
            self._functions[function] = found
        return self._functions[function]

    def _layer(self, function: FunctionNode) -> Reach:
        cls = self.syntax.class_of(function)
        name = self.facts.qualname(cls) if cls is not None else None
        return Reach(Often.LAYER) if name in self.project.layers else _EACH

    def _within(self, node: ast.AST, function: FunctionNode) -> Reach:
        found, child = _EACH, node
        for parent in self.syntax.ancestors(node) if node is not function else ():
            found = found.inside(self._part(child, parent))
            if isinstance(child, ast.stmt):
                found = found.inside(self._in_block(child))
            if parent is function:
                break
            child = parent
        return found

    def _part(self, child: ast.AST, parent: ast.AST) -> Reach:
        """How often ``child`` is reached in one run of ``parent``."""
        match parent:
            case ast.If(test=test, body=body) if child is not test:
                if child in body and (filled := _filled(test, body)) is not None:
                    return Reach(Often.ONCE, filled)
                return self._under(test, child in body)
            case ast.IfExp(test=test, body=taken) if child is not test:
                return self._under(test, child is taken)
            case ast.BoolOp(op=op, values=values):
                before = values[: values.index(child)] if isinstance(child, ast.expr) else []
                reaches = [self._under(v, isinstance(op, ast.And)) for v in before]
                return max(reaches, key=lambda r: r.often, default=_EACH)
            case ast.For(iter=items) if child is not items:
                return Reach(Often.LAYER if self._holds_layers(items) else Often.TURN)
            case ast.While():
                return Reach(Often.TURN)
            case ast.comprehension():
                return _EACH
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() if not (
                isinstance(child, ast.comprehension) and child is parent.generators[0]
            ):
                return Reach(Often.TURN)
            case ast.ExceptHandler():
                return Reach(Often.ERROR)
        return _EACH

    def _under(self, test: ast.expr, outcome: bool) -> Reach:
        held = self._flag(test)
        if held is None:
            return Reach(Often.SOME)
        return _EACH if held.value is outcome else Reach(Often.FLAG, held.names)

    def _flag(self, e: ast.expr | None) -> _Flag | None:
        """What ``e`` is while no flag is set: parameters with a bool as default, attributes that start as one."""
        if e is None or e in self._asked:
            return None
        self._asked.add(e)
        found: _Flag | None = None
        match e:
            case ast.Constant(value=bool(value)):
                found = _Flag(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                held = self._flag(operand)
                found = held and _Flag(not held.value, held.names)
            case ast.BoolOp(op=op, values=values):
                parts = [self._flag(v) for v in values]
                until = isinstance(op, ast.Or)
                ends = next((p for p in parts if p is not None and p.value is until), None)
                found = ends or _agreed(parts)
            case ast.Name():
                found = self._named(e)
            case ast.Attribute():
                found = self._attribute(e)
        self._asked.discard(e)
        return found

    def _named(self, name: ast.Name) -> _Flag | None:
        if definitions := self.inference.definitions(name):
            return _agreed(map(self._bound, definitions))
        stores = [n for n in self.syntax.by_type[ast.Name] if n.id == name.id and isinstance(n.ctx, ast.Store)]
        match [self.syntax.parents[n] for n in stores]:
            case [ast.Assign(value=ast.Constant(value=bool(value)))]:
                return _Flag(value, frozenset({f"`{name.id}`"}))
        return None

    def _bound(self, d: Definition) -> _Flag | None:
        if d.how == "assign" and not d.path:
            return self._flag(d.value)
        if d.how != "parameter" or not isinstance(d.node, ast.arg):
            return None
        function = self.syntax.parents[self.syntax.parents[d.node]]
        default = defaults(function.args).get(d.name) if isinstance(function, (*_FUNCTIONS, ast.Lambda)) else None
        match default:
            case ast.Constant(value=bool(value)):
                pass
            case ast.Constant(value=None) if d.node.annotation is not None and "bool" in ast.unparse(d.node.annotation):
                value = False
            case _:
                return None
        held = [self._flag(v) for v in self._given.get(d.name, ()) if v not in self._asked]
        others = any(h is None or h.value is not value for h in held)
        return None if others else _Flag(value, frozenset({f"`{d.name}`"}))

    @cached_property
    def _given(self) -> dict[str | None, list[ast.expr]]:
        """What calls of the module give by each keyword."""
        found: dict[str | None, list[ast.expr]] = {}
        for k in (k for call in self.syntax.by_type[ast.Call] for k in call.keywords):
            found.setdefault(k.arg, []).append(k.value)
        return found

    def _attribute(self, e: ast.Attribute) -> _Flag | None:
        names = frozenset({f"`{ast.unparse(e)}`"})
        own = self.inference.instance_attribute(e)
        if own is None:
            known = (last_name(e.value) or "").endswith("config") and e.attr in host_api.OF_CONFIGURATIONS
            return _Flag(host_api.OF_CONFIGURATIONS[e.attr], names) if known else None
        stores = self.class_facts(own[0]).stores.get(own[1], [])
        first = [s for s in stores if s.how == "declared" or (s.method is not None and s.method.name in INITIALISERS)]
        if any(s not in first and self.facts.reached(s.statement) for s in stores):
            return None  # it is filled in: no flag
        held = _agreed(self._flag(s.value) for s in first)
        return held and _Flag(held.value, held.names or names)

    def _in_block(self, statement: ast.stmt) -> Reach:
        """What the statements around ``statement`` in its block say: errors that follow, tests that have left above."""
        block = self.syntax.block_of(statement)
        at = block.index(statement)
        if raises(block[at:]):
            return Reach(Often.ERROR)
        for above in block[:at]:
            if isinstance(above, ast.If) and not above.orelse and isinstance(above.body[-1], _LEAVING):
                reach = self._under(above.test, False)
                if reach.often is Often.FLAG:
                    return reach
        return _EACH

    def _holds_layers(self, items: ast.expr) -> bool:
        """Whether ``items`` are modules that are kept in a list: its attribute says so, or it is made as one."""
        for n in ast.walk(items):
            own = self.inference.instance_attribute(n)
            if own is None:
                continue
            made = [s.value for s in self.class_facts(own[0]).stores.get(own[1], ()) if s.value is not None]
            if any(isinstance(v, ast.Call) and self.syntax.qualified(v.func) in CONTAINERS for v in made):
                return True
            if not made and own[1].rpartition("_")[2] in _LAYERS:
                return True
        return False


def _agreed(parts: Iterable[_Flag | None]) -> _Flag | None:
    """What all of ``parts`` are; None where one is not known, or they differ."""
    found = list(parts)
    known = [p for p in found if p is not None]
    if not known or len(known) < len(found) or len({p.value for p in known}) > 1:
        return None
    return _Flag(known[0].value, frozenset().union(*(p.names for p in known)))


def _filled(test: ast.expr, body: list[ast.stmt]) -> frozenset[str] | None:
    """What ``body`` fills, as ``test`` asks: ``if not self.loaded:``, or, without a name, ``if key not in table:``."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
        match part:
            case (
                ast.UnaryOp(op=ast.Not(), operand=ast.Attribute() as held)
                | ast.Compare(left=ast.Attribute() as held, ops=[ast.Is()], comparators=[ast.Constant(value=None)])
            ):
                text, said = ast.unparse(held), frozenset({f"`{ast.unparse(held)}`"})
            case ast.Compare(left=key, ops=[ast.NotIn()], comparators=[table]):
                text, said = f"{ast.unparse(table)}[{ast.unparse(key)}]", frozenset()
            case _:
                continue
        assigned = (s for s in body if isinstance(s, ast.Assign) and text in map(ast.unparse, s.targets))
        if any(not isinstance(s.value, ast.Constant) or s.value.value for s in assigned):
            return said
    return None
