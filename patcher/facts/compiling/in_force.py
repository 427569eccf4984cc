"""Which settings of PyTorch are in force, and what they take into a graph that would end it without."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from patcher.facts import Facts
from patcher.facts.analysis import Analysis


class InForce(Analysis):
    """The settings that a run has chosen, or that the project sets wherever this module runs, and turns off nowhere.

    It sets them in the module, in what that imports, or in each module that imports it and is imported by none.
    """

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        chosen = {s.name for s in facts.settings.torch_settings if s.kind == "config" and s.value is True}
        set_by = {s.module: s.dynamo for s in facts.project.modules.values() if s.dynamo}
        self.names = frozenset(chosen | (self._everywhere(set_by) if set_by else set()))

    def _everywhere(self, set_by: Mapping[str, frozenset[tuple[str, bool]]]) -> set[str]:
        above = _closure(self.module, self.project.importers)
        first = [module for module in above if not self.project.importers.get(module, set()) - {module}]

        def found(module: str) -> set[tuple[str, bool]]:
            below = _closure(module, self.project.imported)
            return {one for name in below for one in set_by.get(name, ())}

        each = [found(module) for module in (first or [self.module])]
        on = set.intersection(*({name for name, value in one if value} for one in each))
        own = found(self.module)
        off = {name for one in (*each, own) for name, value in one if not value}
        return (on | {name for name, value in own if value}) - off

    def takes_in(self, names: Collection[str]) -> bool:
        """Whether ``node``, which needs the settings ``names`` to be in a graph, is in one."""
        return bool(names) and self.names.issuperset(names)


def _closure(module: str, edges: Mapping[str, set[str]]) -> set[str]:
    """All modules that lead from one to the next, that one with them."""
    found, todo = {module}, [module]
    while todo:
        more = edges.get(todo.pop(), set()) - found
        found |= more
        todo += more
    return found
