"""Which settings of PyTorch are in force, and what they take into a graph that would end it without."""

from __future__ import annotations

from collections.abc import Collection

from patcher.facts import Facts
from patcher.facts.analysis import Analysis


class InForce(Analysis):
    """The settings that a run has chosen, or that the project sets for the whole process, and turns off nowhere."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        chosen = {s.name for s in facts.settings.torch_settings if s.kind == "config" and s.value is True}
        on, off = ({name for name, value in facts.project.dynamo if value is which} for which in (True, False))
        self.names = frozenset(chosen | (on - off))

    def takes_in(self, names: Collection[str]) -> bool:
        """Whether ``node``, which needs the settings ``names`` to be in a graph, is in one."""
        return bool(names) and self.names.issuperset(names)
