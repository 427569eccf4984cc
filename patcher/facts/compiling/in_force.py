"""Which settings of PyTorch are in force, and what they take into a graph that would end it without."""

from __future__ import annotations

import ast
from collections.abc import Collection

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.zones.host_reads import HostReads


class InForce(Analysis):
    """The settings that a run has chosen, or that the project sets for the whole process, and turns off nowhere."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        chosen = {s.name for s in facts.settings.torch_settings if s.kind == "config" and s.value is True}
        on, off = ({name for name, value in facts.project.dynamo if value is which} for which in (True, False))
        self.names = frozenset(chosen | (on - off))

    def takes_in(self, node: ast.AST, names: Collection[str]) -> bool:
        """Whether ``node``, which needs the settings ``names`` to be in a graph, is in one.

        Not where its function tests a tensor, which no setting takes in.
        """
        if not names or not self.names.issuperset(names):
            return False
        function = self.syntax.function_of(node)
        reads = self.facts.ask(HostReads).of(function) if function is not None else ()
        return not any(isinstance(self.syntax.parents[r.node], (ast.If, ast.While, ast.IfExp)) for r in reads)
