"""Modules that are steps of a pipeline of data: ``Compose`` calls them on the host, and nobody compiles that."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from patcher.facts.syntax.tree import Syntax, last_name
from patcher.facts.syntax.written import is_stored

#: Packages whose ``Compose`` is for data; one of the project's own counts when it is no module.
PACKAGES = frozenset("torchvision albumentations monai torchio".split())
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
        for read in (r for r in reads if not self._is_inside(cls, r)):
            call = self.syntax.parents[read]
            made = self._composes and isinstance(call, ast.Call) and call.func is read
            end = self._end(call) if made else None
            if end is None:
                return None
            found.add(Step(cls, self._compose(end) or "", self._class_around(end)))
        return frozenset(found)

    def _is_inside(self, cls: str, read: ast.expr) -> bool:
        last = cls.rpartition(".")[2]
        return any(isinstance(a, ast.ClassDef) and a.name == last for a in self.syntax.ancestors(read))

    def _class_around(self, node: ast.AST) -> str:
        around = [a for a in self.syntax.ancestors(node) if isinstance(a, ast.ClassDef)]
        return f"{self.module}.{self.syntax.qualname(around[0])}" if around else ""

    def _end(self, made: ast.AST) -> ast.Call | None:
        """The call of ``Compose`` that ``made`` is given to, also in a local list; None: it may go elsewhere."""
        held: ast.expr | None = None
        for p in self.syntax.ancestors(made):
            if isinstance(p, ast.Call) and self._compose(p) is not None:
                return p
            if isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute) and p.func.attr in _GROWING:
                held = p.func.value
            if isinstance(p, ast.stmt):
                targets = p.targets if isinstance(p, ast.Assign) else [getattr(p, "target", held)]
                return self._end_of(targets[0]) if isinstance(targets[0], ast.Name) and len(targets) == 1 else None
        return None

    def _end_of(self, name: ast.Name) -> ast.Call | None:
        """The same for a local name, wherever it is read."""
        function = self.syntax.function_of(name)
        inside = self.syntax.subtree(function) if function is not None else []
        reads = [n for n in inside if isinstance(n, ast.Name) and n.id == name.id and not is_stored(n)]
        reads = [n for n in reads if getattr(self.syntax.parents[n], "attr", "") not in _GROWING]
        around = ([p for p in self.syntax.ancestors(n) if isinstance(p, ast.Call)] for n in reads)
        ends = [next((p for p in calls if self._compose(p) is not None), None) for calls in around]
        return ends[0] if ends and None not in ends else None

    def _compose(self, call: ast.Call) -> str | None:
        what = self.syntax.qualified(call.func)
        if what is None and isinstance(call.func, ast.Name):
            what = self.resolve(call.func.id)
        return what if what is not None and what.rpartition(".")[2] == "Compose" else None
