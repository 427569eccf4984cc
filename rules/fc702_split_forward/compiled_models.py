"""Which class the models are of that a module compiles as a whole, where that is plain to see."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from patcher.facts.analysis import Analysis
from patcher.facts.compiling.sites import CompileSite, CompileSites
from patcher.facts.syntax.tree import dotted

Form = Literal[
    "again",  # model = torch.compile(model), model.forward = torch.compile(model.forward)
    "built",  # model = torch.compile(Model())
    "in place",  # model.compile()
    "other",  # anything else
]


@dataclass(frozen=True, eq=False)
class CompiledModel:
    """A call that compiles a model. ``cls``: its dotted class. ``model``: the model, ``held``: as it is held after."""

    call: ast.Call
    cls: str
    form: Form
    model: ast.expr
    held: ast.expr | None
    arguments: tuple[tuple[str, ast.expr], ...]


class CompiledModels(Analysis):
    """The models that one module compiles."""

    @cached_property
    def all(self) -> tuple[CompiledModel, ...]:
        """Those whose class is known, in the order of the source."""
        found = (self._compiled(s) for s in self.facts.ask(CompileSites).all)
        return tuple(f for f in found if f is not None)

    def _compiled(self, site: CompileSite) -> CompiledModel | None:
        if site.model is None or site.cls is None or not isinstance(site.node, ast.Call):
            return None
        form: Form = "other"
        plain = site.held is not None and dotted(site.held) is not None
        if plain and self.syntax.alone(self.syntax.statement_of(site.node)):
            form = site.form if site.form in ("again", "built", "in place") else "other"
        held = site.held if form != "other" else None
        return CompiledModel(site.node, site.cls, form, site.model, held, site.arguments)
