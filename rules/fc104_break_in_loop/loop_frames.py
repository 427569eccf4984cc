"""Loops in which a graph ends, so that all of the function around them is given up, and what is lost by that.

PyTorch resumes behind a break, but not inside of a loop. A loop that is a function of its own takes nothing with it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.running.preparation import Handed, Preparation
from patcher.facts.syntax.classes import self_name
from patcher.facts.syntax.tree import FunctionNode, running
from patcher.facts.values.callees import Callees
from patcher.facts.zones.bookwork import Bookkeepers
from patcher.facts.zones.clusters import Clusters
from patcher.facts.zones.endings import Ending, Endings

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
#: So many operations are worth a graph although no layer joins them.
_SOME = 3
#: Packages whose functions end no graph, as far as that is not known of a function.
_KNOWN = frozenset({"torch", "math", "itertools", "functools", "typing", "operator", "collections"})
#: More names than that, in and out, make a signature that nobody wants to read.
_NAMES = 12


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
    """The loops of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.clusters = facts.ask(Clusters)
        self.preparation = facts.ask(Preparation)
        self.endings = facts.ask(Endings)

    def of(self, loop: ast.For | ast.While) -> LoopFrame | None:
        """The frame that ``loop`` could have; None where it ends no graph, or nothing would be won."""
        function = self.syntax.function_of(loop)
        if not isinstance(function, ast.FunctionDef) or loop not in function.body:
            return None
        at = function.body.index(loop)
        head, tail = function.body[:at], function.body[at + 1 :]
        if not self.endings.any_here or not (head or tail):
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
        own = [r for r in self.endings.read_by(function) if r.top is loop and r.looped]
        found = [Ending(r.node, function, r.certain) for r in own]
        if not any(e.sure for e in found):
            found += self.endings.called(turns, loop)
        return next((e for e in found if e.sure), found[0] if found else None)

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
        ends = self.endings.called
        broken = (i for i, s in enumerate(part) if ends([s], s) or any(map(self._is_foreign, running(s))))
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


def _is_part(n: ast.AST) -> bool:
    """Whether ``n`` takes a part of something with a slice, as of tensors."""
    inside = ast.walk(n.slice) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Load) else ()
    return any(isinstance(i, ast.Slice) for i in inside)


def _is_stored(n: ast.Name) -> bool:
    return isinstance(n.ctx, ast.Store)
