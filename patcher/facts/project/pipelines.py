"""Modules that are steps of a pipeline of data: ``Compose`` calls them on the host, and nobody compiles that."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from patcher.facts.syntax.tree import Syntax, last_name

#: Packages whose ``Compose`` is for data; one of the project's own counts when it is no module.
PACKAGES = frozenset("torchvision albumentations monai torchio".split())
_HOLDING = (ast.List, ast.Tuple, ast.Starred, ast.IfExp, ast.BinOp, ast.keyword)
_GROWING = frozenset({"append", "extend", "insert"})


@dataclass(frozen=True)
class Step:
    """``cls`` (dotted) is only ever made for ``compose`` (dotted), called in the class ``inside`` ("": in none)."""

    cls: str
    compose: str
    inside: str


class Pipelines:
    """Those of one module. ``resolve``: a dotted name, as it is written, to what it stands for."""

    def __init__(self, syntax: Syntax, module: str, resolve: Callable[[str], str]) -> None:
        self.syntax = syntax
        self.module = module
        self.resolve = resolve
        self._composes = any(last_name(n.func) == "Compose" for n in syntax.by_type[ast.Call])

    def steps(self, cls: str, reads: Iterable[ast.expr]) -> frozenset[Step] | None:
        """What the class is a step of, by all its ``reads``; None: one of them is for something else."""
        found: set[Step] = set()
        for read in reads:
            if self._is_inside(cls, read):
                continue
            call = self.syntax.parents[read]
            if not self._composes:
                return None
            ends = self._ends(call) if isinstance(call, ast.Call) and call.func is read else None
            if not ends:
                return None
            found |= {Step(cls, compose, self._class_around(end)) for end, compose in ends}
        return frozenset(found)

    def _is_inside(self, cls: str, read: ast.expr) -> bool:
        last = cls.rpartition(".")[2]
        return any(isinstance(a, ast.ClassDef) and a.name == last for a in self.syntax.ancestors(read))

    def _class_around(self, node: ast.AST) -> str:
        around = [a for a in self.syntax.ancestors(node) if isinstance(a, ast.ClassDef)]
        return f"{self.module}.{self.syntax.qualname(around[0])}" if around else ""

    def _ends(self, e: ast.expr, seen: frozenset[str] = frozenset()) -> list[tuple[ast.Call, str]]:
        """The calls of ``Compose`` that ``e`` is given to, each with its dotted name; none: it may go elsewhere."""
        parent = self.syntax.parents[e]
        while isinstance(parent, _HOLDING):
            e, parent = parent, self.syntax.parents[parent]  # type: ignore[assignment]
        if isinstance(parent, ast.Call) and e is not parent.func:
            if (compose := self._compose(parent)) is not None:
                return [(parent, compose)]
            holder = parent.func.value if isinstance(parent.func, ast.Attribute) else None
            if isinstance(holder, ast.Name) and parent.func.attr in _GROWING:  # type: ignore[attr-defined]
                return self._ends_of(holder, seen)
            return self._ends(parent, seen)  # a step of steps
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and parent.value is e:
            targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
            if len(targets) == 1 and isinstance(targets[0], ast.Name):
                return self._ends_of(targets[0], seen)
        return []

    def _ends_of(self, name: ast.Name, seen: frozenset[str]) -> list[tuple[ast.Call, str]]:
        """The same for a local name, wherever it is read."""
        function = self.syntax.function_of(name)
        if function is None or name.id in seen:
            return []
        found = []
        for read in self._reads(name.id, function):
            parent = self.syntax.parents[read]
            if isinstance(parent, ast.Attribute) and parent.attr in _GROWING:
                continue
            if not (ends := self._ends(read, seen | {name.id})):
                return []
            found += ends
        return found

    def _reads(self, name: str, function: ast.AST) -> Iterator[ast.Name]:
        for n in self.syntax.subtree(function):
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load):
                yield n

    def _compose(self, call: ast.Call) -> str | None:
        what = self.syntax.qualified(call.func)
        if what is None and isinstance(call.func, ast.Name):
            what = self.resolve(call.func.id)
        return what if what is not None and what.rpartition(".")[2] == "Compose" else None
