"""Functions that only run where the tensors are those of another compiler, which `torch.compile` leaves to it."""

from __future__ import annotations

import ast
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import host_api
from patcher.facts.values.module_values import imported


class OtherCompilers(Analysis):
    """Functions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[FunctionNode, str] = {}

    def of(self, function: FunctionNode) -> str:
        """The package of the compiler whose functions ``function`` uses without asking whether it is there, or ""."""
        if function not in self._known:
            self._known[function] = self._of(function) if self._packages else ""
        return self._known[function]

    @cached_property
    def _packages(self) -> frozenset[str]:
        found = {what.partition(".")[0] for _, what, _ in self.syntax.all_imports}
        return host_api.OTHER_COMPILERS & found

    def _of(self, function: FunctionNode) -> str:
        tests = [n.test for kind in (ast.If, ast.IfExp) for n in self.syntax.own(function, kind)]  # type: ignore[attr-defined]
        asked = {n.id for test in tests for n in ast.walk(test) if isinstance(n, ast.Name)}
        if not asked.isdisjoint(self._told_by):
            return ""
        used = (imported(self.syntax, n) or "" for n in self.syntax.own(function, ast.Name))
        return next((p for what in used if (p := what.partition(".")[0]) in self._packages), "")

    @cached_property
    def _told_by(self) -> frozenset[str]:
        """Names that tell whether such a package is there: in the tests around its imports, and bound beside these."""
        found: set[str] = set()
        for statement in (*self.syntax.by_type[ast.Import], *self.syntax.by_type[ast.ImportFrom]):
            names = [getattr(statement, "module", None) or "", *(a.name for a in statement.names)]  # type: ignore[attr-defined]
            if self._packages.isdisjoint(n.partition(".")[0] for n in names):
                continue
            for around in self.syntax.ancestors(statement):
                if isinstance(around, ast.If):
                    found.update(n.id for n in ast.walk(around.test) if isinstance(n, ast.Name))
                if isinstance(around, (ast.If, ast.Try)):
                    beside = (n for n in self.syntax.subtree(around) if isinstance(n, ast.Name))
                    found.update(n.id for n in beside if isinstance(n.ctx, ast.Store))
        return frozenset(found)
