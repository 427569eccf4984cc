"""How often a line is reached in one call of what gets compiled, as far as the source tells."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.checks.errors import raises
from patcher.facts.running.by_default import ByDefault
from patcher.facts.running.callers import Callers
from patcher.facts.running.other_compilers import OtherCompilers
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.values.module_values import CONTAINERS

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
#: Words of what holds the layers of a model, where nothing else tells.
_LAYERS = frozenset("layers blocks stages".split())


class Often(enum.IntEnum):
    """From what costs most to what costs least. UNKNOWN: no module's ``forward`` and nothing compiled reaches it.

    NEVER: in no call that the project makes; somebody else may make one. ELSEWHERE: where another compiler is at work.
    """

    TURN = 0
    LAYER = 1
    CALL = 2
    UNKNOWN = 3
    SOME = 4
    ONCE = 5
    FLAG = 6
    NEVER = 7
    ELSEWHERE = 8
    ERROR = 9


_SAID = {
    Often.TURN: "each turn of a loop",
    Often.LAYER: "each layer",
    Often.CALL: "each call",
    Often.UNKNOWN: "",
    Often.SOME: "some calls",
    Often.ONCE: "only when a cache is filled",
    Often.FLAG: "only when a flag is set",
    Often.NEVER: "in no call that the project makes",
    Often.ELSEWHERE: "only where another compiler is at work",
    Often.ERROR: "only on the way to an error",
}


@dataclass(frozen=True)
class Reach:
    """``often``, and the ``flags`` that are not so by default (FLAG), or not given (NEVER), as the source calls them.

    ELSEWHERE: the package of the other compiler. ONCE: the attribute that is set then, and by nothing compiled else.
    """

    often: Often
    flags: frozenset[str] = frozenset()

    def __str__(self) -> str:
        if self.often is Often.FLAG and self.flags:
            return f"only when {' or '.join(sorted(self.flags))} is set"
        if self.often is Often.NEVER and self.flags:
            return f"only when {' or '.join(sorted(self.flags))} is given: no call of the project does"
        if self.often is Often.ONCE and self.flags:
            return f"only until {' or '.join(sorted(self.flags))} is set"
        if self.often is Often.ELSEWHERE and self.flags:
            return f"only with {' or '.join(sorted(self.flags))}, which compiles by itself"
        return _SAID[self.often]

    def inside(self, outer: Reach) -> Reach:
        """The same for a part of what is itself reached as ``outer`` says: conditions limit, loops multiply."""
        if max(self.often, outer.often) > Often.CALL:
            return max(outer, self, key=lambda r: r.often)
        return min(outer, self, key=lambda r: r.often)


_EACH = Reach(Often.CALL)


class Frequency(Analysis):
    """Lines of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.by_default = facts.ask(ByDefault)
        self.callers = facts.ask(Callers)
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
            if package := self.facts.ask(OtherCompilers).of(function):
                return self._functions.setdefault(function, Reach(Often.ELSEWHERE, frozenset({f"`{package}`"})))
            self._open.add(function)
            calls = self.callers.of(function)
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
                if child in body and _fills(test, body):
                    return Reach(Often.ONCE)
                if child in body and (held := self._sets(test, body)) is not None:
                    return Reach(Often.ONCE, frozenset({f"`{ast.unparse(held)}`"}))
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
        held = self.by_default.of(test)
        if held is None:
            return Reach(Often.SOME)
        if bool(held.value) is outcome:
            return _EACH
        never = held.unset and not held.flags
        return Reach(Often.NEVER, held.unset) if never else Reach(Often.FLAG, held.flags)

    def _sets(self, test: ast.expr, body: list[ast.stmt]) -> ast.expr | None:
        """The attribute that ``test`` asks for, and that ``body`` sets for good: ``if not self.loaded:``."""
        for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]:
            match part:
                case ast.UnaryOp(op=ast.Not(), operand=ast.Attribute() as held):
                    given = [s.value for s in _assigned(held, body)]
                    last = any(isinstance(v, ast.Constant) and v.value for v in given)
                case ast.Compare(left=ast.Attribute() as held, ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                    given = [s.value for s in _assigned(held, body)]
                    last = bool(given) and not any(isinstance(v, ast.Constant) and v.value is None for v in given)
                case _:
                    continue
            if last and self._is_set_by(held, body):
                return held
        return None

    def _is_set_by(self, held: ast.Attribute, body: list[ast.stmt]) -> bool:
        """Whether no compiled code but ``body`` gives the attribute of the instance another value."""
        own = self.inference.instance_attribute(held)
        if own is None or held.attr in self.project.foreign_stores:
            return False
        inside = {n for s in body for n in ast.walk(s)}
        stores = [s.statement for s in self.class_facts(own[0]).stores.get(own[1], ())]
        return all(n in inside or not self.facts.reached(n) for n in stores)

    def _in_block(self, statement: ast.stmt) -> Reach:
        """What the statements around ``statement`` in its block say: errors that follow, tests that have left above."""
        block = self.syntax.block_of(statement)
        at = block.index(statement)
        if raises(block[at:]):
            return Reach(Often.ERROR)
        for above in block[:at]:
            if isinstance(above, ast.If) and not above.orelse and isinstance(above.body[-1], _LEAVING):
                test, below = _turned(above.test), block[block.index(above) + 1 :]
                if _fills(test, below):
                    return Reach(Often.ONCE)
                if (held := self._sets(test, below)) is not None:
                    return Reach(Often.ONCE, frozenset({f"`{ast.unparse(held)}`"}))
                reach = self._under(above.test, False)
                if reach.often in (Often.FLAG, Often.NEVER):
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


def _assigned(held: ast.Attribute, body: list[ast.stmt]) -> list[ast.Assign]:
    """The statements of ``body`` that give ``held`` a value, whenever ``body`` runs."""
    name = ast.unparse(held)
    return [s for s in body if isinstance(s, ast.Assign) and any(ast.unparse(t) == name for t in s.targets)]


def _turned(test: ast.expr) -> ast.expr:
    """What holds where ``test`` does not."""
    match test:
        case ast.Compare(left=left, ops=[ast.In()], comparators=comparators):
            return ast.Compare(left, [ast.NotIn()], comparators)
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=comparators):
            return ast.Compare(left, [ast.Is()], comparators)
    return ast.UnaryOp(ast.Not(), test)


def _fills(test: ast.expr, body: list[ast.stmt]) -> bool:
    """Whether ``body`` puts into a table what is not in it yet, as ``test`` says: ``if key not in self.table:``."""
    match test:
        case ast.Compare(left=key, ops=[ast.NotIn()], comparators=[table]):
            wanted = ast.unparse(table), ast.unparse(key)
            targets = [t for s in body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Subscript)]
            return any((ast.unparse(t.value), ast.unparse(t.slice)) == wanted for t in targets)
    return False
