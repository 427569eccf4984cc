"""What a run has compiled again for, or broken in all over, found in the source."""

from __future__ import annotations

import ast
from functools import cached_property
from pathlib import PurePath

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import FunctionNode
from patcher.settings import Extent, Varied

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Variations(Analysis):
    """The evidence of a run, as one module has to do with it: functions go by their dotted names."""

    def of(self, function: str) -> tuple[Varied, ...]:
        """What has varied in the function of that dotted name, of this module or another one."""
        return self._named.get(function, ())

    def at(self, function: FunctionNode) -> tuple[Varied, ...]:
        """What has varied in ``function``, which stands in this module."""
        return self.of(f"{self.module}.{self.syntax.scope_of(function)}")

    def extent(self, function: FunctionNode) -> Extent | None:
        """What a run has shown of all that ``function``, which stands in this module, does and calls."""
        scope = self.syntax.scope_of(function) if self._extents else ""
        return self._extents.get(scope)

    @cached_property
    def _extents(self) -> dict[str, Extent]:
        here = PurePath(self.facts.path)
        return {e.function: e for e in reversed(self.facts.settings.extents) if PurePath(e.path) == here}

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The dotted names of all functions in which something has varied."""
        return tuple(self._named)

    @cached_property
    def definitions(self) -> dict[str, FunctionNode]:
        """Those of ``functions`` that stand in this module."""
        here = self.syntax.functions if self.facts.settings.evidence else []
        named = {f"{self.module}.{self.syntax.scope_of(f)}": f for f in here}
        return {name: f for name, f in named.items() if name in self._named}

    @cached_property
    def _named(self) -> dict[str, tuple[Varied, ...]]:
        modules = {PurePath(path): summary.module for path, summary in self.project.modules.items()}
        modules[PurePath(self.facts.path)] = self.module
        found: dict[str, dict[Varied, None]] = {}
        for varied in self.facts.settings.evidence:
            module = modules.get(PurePath(varied.path))
            if module is not None:
                found.setdefault(f"{module}.{varied.function.replace('<locals>.', '')}", {})[varied] = None
        return {name: tuple(several) for name, several in found.items()}
