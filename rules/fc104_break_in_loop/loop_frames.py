"""Loops in which a graph ends, so that all of the function around them is given up, and what is lost by that.

PyTorch resumes behind a break, but not inside of a loop. A loop that is a function of its own takes nothing with it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.running.preparation import Handed, Preparation
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, running
from patcher.facts.values.callees import Callees
from patcher.facts.zones.bookwork import Bookkeepers
from patcher.facts.zones.clusters import Clusters
from patcher.facts.zones.host_reads import HostRead, HostReads

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
#: How far down calls are followed.
_DEPTH = 4
#: So many operations are worth a graph although no layer joins them.
_SOME = 3
#: Packages whose functions end no graph, as far as that is not known of a function.
_KNOWN = frozenset({"torch", "math", "itertools", "functools", "typing", "operator", "collections"})
#: More names than that, in and out, make a signature that nobody wants to read.
_NAMES = 12


@dataclass(frozen=True)
class Ending:
    """``node`` ends a graph, in ``function``: a read, or the definition of a function that is left out of graphs.

    ``sure``: it does so whenever the function in question runs.
    """

    node: ast.AST
    function: FunctionNode
    sure: bool


@dataclass(frozen=True)
class LoopFrame:
    """What moving a loop takes and gives back. ``operations``: those written in the function outside of the loop.

    ``handed``: values from above; ``left``: names that are read below. ``why_not``: what keeps it from being moved.
    ``name``: how the function that is new may be called.
    """

    ending: Ending
    operations: int
    name: str
    handed: tuple[Handed, ...] = ()
    left: tuple[str, ...] = ()
    why_not: str = ""


class LoopFrames(Analysis):
    """The loops of one module. ``eager_only``: whether compiled code never comes to a node."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.clusters = facts.ask(Clusters)
        self.preparation = facts.ask(Preparation)
        self._endings: dict[FunctionNode, Ending | None] = {}

    def of(self, loop: ast.For | ast.While) -> LoopFrame | None:
        """The frame that ``loop`` could have; None where it ends no graph, or nothing would be won."""
        function = self.syntax.function_of(loop)
        if not isinstance(function, ast.FunctionDef) or loop not in function.body:
            return None
        at = function.body.index(loop)
        head, tail = function.body[:at], function.body[at + 1 :]
        if not self._may_end or not (head or tail):
            return None
        ending = self._of_loop(loop, function)
        operations = self._won(head, tail) if ending is not None else 0
        if ending is None or not operations:
            return None
        name = self._name(function)
        if self.clusters.is_left_out(function) or not name:
            return None
        handed = self.clusters.handed(function, loop, loop)
        if isinstance(handed, str):
            return LoopFrame(ending, operations, name, why_not=handed)
        handed = (*handed, *self._kept(function, loop, handed))
        left = self.preparation.left(function, loop, loop, handed)
        if isinstance(left, str):
            return LoopFrame(ending, operations, name, why_not=left)
        if len(handed) + len(left) > _NAMES:
            return LoopFrame(ending, operations, name, why_not=f"{len(handed) + len(left)} names go in and out of it")
        return LoopFrame(ending, operations, name, handed, tuple(left))

    # --- where a graph ends -----------------------------------------------------------------------------------------

    def _of_loop(self, loop: ast.For | ast.While, function: FunctionNode) -> Ending | None:
        turns: list[ast.AST] = [*loop.body, *([loop.test] if isinstance(loop, ast.While) else [])]
        own = [r for r in self._reads(function) if r.top is loop and r.looped]
        found = [Ending(r.node, function, r.certain) for r in own]
        if not any(e.sure for e in found):
            found += self._called(turns, loop, 0)
        return next((e for e in found if e.sure), found[0] if found else None)

    def _called(self, nodes: list[ast.AST], top: ast.AST, depth: int) -> list[Ending]:
        """Where the functions end a graph that ``nodes``, which stand in ``top``, call."""
        found: list[Ending] = []
        for call in (n for part in nodes for n in running(part) if isinstance(n, ast.Call)):
            if self._is_passed_by(call):
                continue
            functions = [self.callees.here(name) for name in self.callees.of(call)]
            endings = [None if f is None else self._of_function(f, depth + 1) for f in functions]
            first = next((e for e in endings if e is not None), None)
            if first is not None:
                sure = all(e is not None and e.sure for e in endings) and self._always_runs(call, top)
                found.append(Ending(first.node, first.function, sure))
        return found

    @cached_property
    def _may_end(self) -> bool:
        """Whether any function of the module ends a graph by itself."""
        reads = self.facts.ask(HostReads)
        return any(reads.of(f) or self.clusters.is_left_out(f) for f in self.syntax.functions)

    def _of_function(self, function: FunctionNode, depth: int) -> Ending | None:
        if function in self._endings:
            return self._endings[function]
        if self.clusters.is_left_out(function):
            return Ending(function, function, True)
        cls = self.syntax.parents[function]
        replaced = isinstance(cls, ast.ClassDef) and bool(cls.decorator_list) and function.name == "forward"
        if depth > _DEPTH or replaced:  # a decorator of a layer may well put another method in the place of this one
            return None
        self._endings[function] = None  # what calls itself adds nothing
        found = [Ending(r.node, function, r.certain and _comes_to(r.top, function)) for r in self._reads(function)]
        if not any(e.sure for e in found):
            found += self._called(list(function.body), function, depth)
        self._endings[function] = next((e for e in found if e.sure), found[0] if found else None)
        return self._endings[function]

    def _reads(self, function: FunctionNode) -> list[HostRead]:
        return [
            r
            for r in self.facts.ask(HostReads).of(function)
            if self._is_of_tensor(r.node) and not self._is_passed_by(r.node)
        ]

    def _is_of_tensor(self, read: ast.expr) -> bool:
        """Whether ``read`` is of a tensor, as far as is known: lists and arrays have a ``tolist`` as well."""
        if isinstance(read, ast.Call) and isinstance(read.func, ast.Attribute):
            what = self.syntax.qualified(read.func)
            return what is not None or self.facts.ask(HostReads).inference.of(read.func.value).is_tensor
        return True

    def _is_passed_by(self, node: ast.AST) -> bool:
        """Whether compiled code never comes to ``node``, or in training only."""
        if self.facts.eager_only(node):
            return True
        child: ast.AST = node
        for parent in self.syntax.ancestors(node):
            if isinstance(parent, ast.If) and child in parent.body and _asks_for_training(parent.test):
                return True
            child = parent
        return False

    def _always_runs(self, node: ast.AST, top: ast.AST) -> bool:
        child = node
        for parent in self.syntax.ancestors(node):
            if parent is top and isinstance(parent, FunctionNode):
                return _comes_to(child, parent)
            if not self.facts.ask(HostReads).always_runs(child, parent):
                return False
            if parent is top:
                return True
            child = parent
        return False

    # --- what is won ------------------------------------------------------------------------------------------------

    def _won(self, head: list[ast.stmt], tail: list[ast.stmt]) -> int:
        """How many operations there are outside of the loop; 0 where they would not be fewer graphs, or better ones.

        A layer of this project that is called from a frame that is given up is a graph of its own, and those of one
        class are one.
        """
        total, fewer = 0, 0
        for part in (self._unbroken(head[::-1]), self._unbroken(tail)):
            nodes = [n for s in part for n in running(s)]
            layers = [n for n in nodes if isinstance(n, ast.Call) and self.preparation.calls_layer(n)]
            classes = {self.callees.class_of(c.func) for c in layers} - {None}
            operations = (
                self.facts.ask(Bookkeepers).of_nodes(nodes).operations + len(layers) + sum(map(_is_part, nodes))
            )
            total += operations
            fewer += len(classes) - bool(operations)
        return total if fewer > 0 or (fewer == 0 and total > _SOME) else 0

    def _unbroken(self, part: list[ast.stmt]) -> list[ast.stmt]:
        """The first statements of ``part`` that call nothing in which a graph may end, or that is not known."""
        broken = (i for i, s in enumerate(part) if self._called([s], s, 0) or any(map(self._is_foreign, running(s))))
        return part[: next(broken, len(part))]

    def _is_foreign(self, n: ast.AST) -> bool:
        """Whether ``n`` calls a function from elsewhere; what is written like a class makes an object."""
        what = self.syntax.qualified(n.func) if isinstance(n, ast.Call) else None
        package, _, name = (what or "").rpartition(".")
        return bool(package) and package.partition(".")[0] not in _KNOWN and not name[:1].isupper()

    # --- how it is moved --------------------------------------------------------------------------------------------

    def _name(self, function: FunctionNode) -> str:
        """A name that no other class gives a loop of a method of that name; "" where there can be none."""
        wish = f"_{function.name.strip('_')}_loop"
        cls = self.syntax.parents[function]
        if isinstance(cls, ast.Module):
            return wish
        if not isinstance(cls, ast.ClassDef) or self_name(function) is None:
            return ""
        own = f"{self.module}.{self.syntax.qualname(cls)}"
        family, _ = self.project.family(own)
        others = {c for c in family - {own} if (s := self.project.known_class(c)) and function.name in s.methods}
        if any(c.rpartition(".")[2] == cls.name for c in others):
            return ""
        words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z\d]+|\d+", cls.name)
        return "_".join([wish, "of", *map(str.lower, words)]) if others else wish

    def _kept(self, function: FunctionNode, loop: ast.stmt, handed: tuple[Handed, ...]) -> list[Handed]:
        """Names that the loop gives another value without reading them, and that keep theirs when it never runs."""
        known = {h.name for h in handed}
        if any(isinstance(n, ast.Delete) for n in ast.walk(function)):
            return []
        body = function.body
        at = body.index(loop)
        before = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
        assigned = [t for s in body[:at] if isinstance(s, ast.Assign) for t in s.targets]
        before |= {n.id for t in assigned for n in ast.walk(t) if isinstance(n, ast.Name) and _is_stored(n)}
        below = {n.id for s in body[at + 1 :] for n in ast.walk(s) if isinstance(n, ast.Name)}
        stored = [n.id for n in running(loop) if isinstance(n, ast.Name) and _is_stored(n)]
        return [Handed(n) for n in dict.fromkeys(stored) if n in before and n in below and n not in known]


def _comes_to(statement: ast.AST, function: FunctionNode) -> bool:
    """Whether nothing in the body of ``function`` returns before ``statement``, which stands there."""
    before = next((i for i, s in enumerate(function.body) if s is statement), 0)
    return not any(isinstance(n, ast.Return) for s in function.body[:before] for n in running(s))


def _is_part(n: ast.AST) -> bool:
    """Whether ``n`` takes a part of something with a slice, as of tensors."""
    inside = ast.walk(n.slice) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) else ()
    return any(isinstance(i, ast.Slice) for i in inside)


def _is_stored(n: ast.Name) -> bool:
    return isinstance(n.ctx, ast.Store)


def _asks_for_training(test: ast.expr) -> bool:
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return any(isinstance(p, ast.Attribute) and p.attr == "training" for p in parts)
