"""What every analysis of a module has at hand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.facts import Facts


class Analysis:
    """One question about a module, answered from its facts. ``Facts.ask`` makes the one instance that a module has."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.syntax = facts.syntax
        self.inference = facts.inference
        self.presumed = facts.presumed
        self.project = facts.project
        self.module = facts.module
        self.flow_of = facts.flow
        self.class_facts = facts.class_facts

    def readers(self, target: ast.AST) -> list[ast.Name] | None:
        """Where the name is read that gets its value at ``target``.

        None where nested functions may read or bind it, and where it is deleted, for which it has to have a value.
        """
        function = self.syntax.function_of(target)
        flow = self.flow_of(function) if function is not None else None
        definition = flow.by_node.get(target) if flow is not None else None
        if flow is None or definition is None or definition.name in flow.captured | flow.shared | flow.deleted:
            return None
        return flow.uses.get(definition, [])


class ClassAnalysis(Analysis):
    """One question about the class ``cls``. ``name``: its dotted name; ``members``: what it defines and assigns."""

    def __init__(self, facts: Facts, cls: ast.ClassDef) -> None:
        super().__init__(facts)
        self.cls = cls
        self.name = facts.qualname(cls) or cls.name
        self.members = facts.class_facts(cls)
