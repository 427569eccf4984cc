"""Which class the models are of that a module compiles as a whole, where that is plain to see."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import dotted
from patcher.facts.values.callees import Callees
from patcher.facts.values.compile_calls import CompileCall, compile_calls

_WHOLE = frozenset({"torch.compile", "torch.nn.Module.compile"})

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

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)

    @cached_property
    def all(self) -> tuple[CompiledModel, ...]:
        """Those whose class is known, in the order of the source."""
        found = (self._compiled(c) for c in compile_calls(self.syntax))
        return tuple(f for f in found if f is not None)

    def _compiled(self, compiled: CompileCall) -> CompiledModel | None:
        target, call = compiled.target, compiled.node
        if not isinstance(target, ast.expr) or not isinstance(call, ast.Call) or compiled.what not in _WHOLE:
            return None
        method = isinstance(target, ast.Attribute) and target.attr == "forward"
        model = target.value if method and isinstance(target, ast.Attribute) else target
        cls = self._class_of(model)
        if cls is None or not self.callees.project.is_module_class(cls):
            return None
        form, held = self._form(compiled, call, target)
        if method and held is not None:
            held = held.value if form == "again" and isinstance(held, ast.Attribute) else None
        return CompiledModel(call, cls, form if held is not None else "other", model, held, compiled.arguments)

    def _form(self, compiled: CompileCall, call: ast.Call, target: ast.expr) -> tuple[Form, ast.expr | None]:
        statement = self.syntax.statement_of(call)
        if not self.syntax.alone(statement):
            return "other", None
        match statement:
            case ast.Expr(value=value) if value is call and compiled.kind == "in place" and dotted(target):
                return "in place", target
            case ast.Assign(targets=[held], value=value) if value is call and compiled.kind == "call" and dotted(held):
                if dotted(held) == dotted(target):
                    return "again", held
                if isinstance(target, ast.Call):
                    return "built", held
        return "other", None

    def _class_of(self, model: ast.expr, depth: int = 6) -> str | None:
        """The class, also through ``model.to(device)`` and names that get one thing only."""
        match model:
            case ast.Call(func=ast.Attribute(value=ast.Name() as inner)) if depth and self.callees.is_same(model):
                return self._class_of(inner, depth - 1)
            case ast.Name() if depth:
                classes = {self._class_of(v, depth - 1) if v is not None else None for v in self._values(model)}
                return classes.pop() if len(classes) == 1 else self.callees.class_of(model) if not classes else None
        return self.callees.class_of(model)

    def _values(self, name: ast.Name) -> list[ast.expr | None]:
        if self.syntax.function_of(name) is None:
            return self._global(name)
        definitions = self.callees.inference.definitions(name)
        if any(d.how == "parameter" for d in definitions):
            return []
        return [d.value if d.how == "assign" and not d.path else None for d in definitions]

    def _global(self, name: ast.Name) -> list[ast.expr | None]:
        """What the module's top level has given ``name`` before."""
        found: list[ast.expr | None] = []
        for store in self.syntax.by_type[ast.Name]:
            if isinstance(store, ast.Name) and store.id == name.id and not isinstance(store.ctx, ast.Load):
                statement = self.syntax.statement_of(store)
                before = statement.lineno < name.lineno and statement is not self.syntax.statement_of(name)
                if before and self.syntax.function_of(store) is None:
                    own = isinstance(statement, ast.Assign) and store in statement.targets
                    found.append(statement.value if own and isinstance(statement, ast.Assign) else None)
        return found
