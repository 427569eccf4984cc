"""Which of the places that compile are about the models that a run has measured."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite, CompileSites

_DEPTH = 8


class MeasuredModels(Analysis):
    """The places of one module, and the classes in ``settings.models``."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        known = facts.project.classes() if facts.settings.models else ()
        self._models = {name for name, _ in known if any(_same(name, model) for model in facts.settings.models)}
        parts = {part for model in self._models for part in self._made_by(model)}
        classes = {site: cls for site in facts.ask(CompileSites).all if (cls := self._class(site)) is not None}
        self._related = {
            site: cls in parts or not self._models.isdisjoint(self._made_by(cls)) for site, cls in classes.items()
        }

    def is_another(self, node: ast.AST) -> bool:
        """Whether the site at ``node`` compiles a model that was not measured: of a known class, and no part of it."""
        site = self.facts.ask(CompileSites).at(node)
        return bool(self.facts.settings.models) and site is not None and not self._related.get(site, True)

    def _class(self, site: CompileSite) -> str | None:
        if site.cls is not None or site.form != "decorator":
            return site.cls
        definition = site.call.target
        cls = definition if isinstance(definition, ast.ClassDef) else self.syntax.class_of(site.node)
        name = self.syntax.qualname(cls) if cls is not None else None
        return None if name is None else f"{self.module}.{name}"

    def _made_by(self, cls: str) -> set[str]:
        """The class, and those that its instances make when they are made."""
        todo, seen = [(cls, 0)], {cls}
        while todo:
            name, depth = todo.pop()
            made = (self.project.function(init) for init in self.project.methods(name, "__init__"))
            mentions = {m for f in made if f is not None and depth < _DEPTH for m in f.mentions} - seen
            parts = [m for m in mentions if self.project.known_class(m) is not None]
            seen.update(parts)
            todo += [(part, depth + 1) for part in parts]
        return seen


def _same(a: str, b: str) -> bool:
    """Whether two dotted names may mean one class: where an import starts from is not known."""
    return a == b or a.endswith(f".{b}") or b.endswith(f".{a}")
