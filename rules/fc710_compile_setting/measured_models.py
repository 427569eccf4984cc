"""Which of the places that compile are about the models that a run has measured."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.values.callees import Callees

_DEPTH = 8


class MeasuredModels(Analysis):
    """The places of one module, and the classes in ``settings.models``."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        known = facts.project.classes() if facts.settings.models else ()
        self._models = {name for name, _ in known if any(_same(name, model) for model in facts.settings.models)}
        parts = {part for model in self._models for part in self._made_by(model)}
        classes = {site: found for site in facts.ask(CompileSites).all if (found := self._classes(site))}
        self._related = {
            site: any(cls in parts or not self._models.isdisjoint(self._made_by(cls)) for cls in found)
            for site, found in classes.items()
        }

    def is_another(self, node: ast.AST) -> bool:
        """Whether the site at ``node`` compiles a model that was not measured: of a known class, and no part of it."""
        site = self.facts.ask(CompileSites).at(node)
        return bool(self.facts.settings.models) and site is not None and not self._related.get(site, True)

    def beside(self, node: ast.AST) -> int | None:
        """The line of a place of this module that compiles a measured model, where nobody knows what ``node`` does."""
        site = self.facts.ask(CompileSites).at(node)
        if not self.facts.settings.models or site is None or site in self._related:
            return None
        return next((other.node.lineno for other, related in self._related.items() if related), None)

    def _classes(self, site: CompileSite) -> set[str]:
        """What may be compiled there; none where nobody knows. Of a parameter, all that calls of this file give."""
        cls = self._class(site)
        if cls is not None or not isinstance(site.model, ast.Name):
            return {cls} if cls is not None else set()
        callees, sites = self.facts.ask(Callees), self.facts.ask(CompileSites)
        given = [e for d in callees.inference.definitions(site.model) for e in callees.given(d)]
        classes = {sites.class_of(e) for e in given}
        return {cls for cls in classes if cls is not None and self.project.is_module_class(cls) and None not in classes}

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
