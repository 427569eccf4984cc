"""The calls that a project makes of a function: what they say of how it is used, not of how it could be."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.classes import parameter_at
from patcher.facts.syntax.tree import FunctionNode


class Callers(Analysis):
    """Functions of one module. Somebody outside may call one that is public: nothing that must hold rests on this."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[FunctionNode, list[ast.Call]] = {}

    def of(self, function: FunctionNode) -> list[ast.Call]:
        """All calls of ``function`` that the project makes; empty when it is used in another way, or elsewhere."""
        if function not in self._known:
            self._known[function] = self.inference.calls_of(function) or self._of_public(function)
        return self._known[function]

    def _of_public(self, function: FunctionNode) -> list[ast.Call]:
        """Those of a function at the top level, where only its own file names it."""
        name, calls = function.name, []
        if function not in self.syntax.tree.body or self._is_exported(name) or self._is_named_elsewhere(name):
            return []
        if sum(getattr(s, "name", None) == name for s in self.syntax.tree.body) > 1:
            return []
        for node in self.syntax.by_type[ast.Name]:
            if isinstance(node, ast.Name) and node.id == name:
                parent = self.syntax.parents[node]
                if not (isinstance(parent, ast.Call) and parent.func is node):
                    return []
                calls.append(parent)
        return calls

    def _is_exported(self, name: str) -> bool:
        """Whether the file lists the name, as ``__all__`` does."""
        lists = (n for kind in (ast.List, ast.Tuple) for n in self.syntax.by_type[kind])
        return any(isinstance(e, ast.Constant) and e.value == name for n in lists for e in n.elts)  # type: ignore[attr-defined]

    def _is_named_elsewhere(self, name: str) -> bool:
        if not self.project.whole:
            return True
        whole = f"{self.module}.{name}"
        if any(whole in s.imports for s in self.project.modules.values()):
            return True
        loose = (f".{name}", f"self.{name}")
        mentions = self.project.mentions(name)
        return any(m in loose or (m == whole and module != self.module) for m, module, _ in mentions)

    def given(self, function: FunctionNode, parameter: ast.arg) -> list[ast.expr | None]:
        """What each of these calls gives for ``parameter``, None where it is left out; empty when that is not known."""
        bound = self.syntax.method_of(function) is function and "staticmethod" not in map(
            ast.unparse, function.decorator_list
        )
        given: list[ast.expr | None] = []
        for call in self.of(function):
            if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
                return []
            by_name = [k.value for k in call.keywords if k.arg == parameter.arg]
            by_place = [a for i, a in enumerate(call.args) if parameter_at(function, i, bound) is parameter]
            given.append(next(iter((*by_name, *by_place)), None))
        return given
