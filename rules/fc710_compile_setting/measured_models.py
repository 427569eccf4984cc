"""Which of the places that compile are about the models that a run has measured."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.flow.fixpoint import reach


class MeasuredModels(Analysis):
    """The places of one module, and the classes in ``settings.models``."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        known = facts.project.classes() if facts.settings.models else ()
        models = facts.settings.models
        self._measured = frozenset(name for name, _ in known if any(_same(name, model) for model in models))
        self._parts: set[str] = reach(self._measured, self._made)

    def is_another(self, node: ast.AST) -> bool:
        """Whether the site at ``node`` compiles a model that was not measured: of a known class, and no part of it."""
        site = self.facts.ask(CompileSites).at(node)
        cls = self._class(site) if site is not None and self._measured else None
        if cls is None or cls in self._parts:
            return False
        made = reach([cls], self._made)
        return self._measured.isdisjoint(made)

    def _class(self, site: CompileSite) -> str | None:
        if site.cls is not None or site.form != "decorator":
            return site.cls
        definition = site.call.target
        cls = definition if isinstance(definition, ast.ClassDef) else self.syntax.class_of(site.node)
        name = self.syntax.qualname(cls) if cls is not None else None
        return None if name is None else f"{self.module}.{name}"

    def _made(self, cls: str) -> set[str]:
        """The classes that instances of ``cls`` make when they are made."""
        made = (self.project.function(init) for init in self.project.methods(cls, "__init__"))
        return {m for f in made if f is not None for m in f.mentions if self.project.known_class(m) is not None}


def _same(a: str, b: str) -> bool:
    """Whether two dotted names may mean one class: where an import starts from is not known."""
    return a == b or a.endswith(f".{b}") or b.endswith(f".{a}")
