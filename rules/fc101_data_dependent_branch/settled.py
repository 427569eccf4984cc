"""Expressions that are made of what a module has, and of no tensor that it is given."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.calls import Calls
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.values.callees import Callees
from patcher.facts.values.types import Kind

_ASKED = frozenset("shape dtype device ndim".split())
_DEEP = 4


class Settled(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.callees = facts.ask(Callees)
        self.calls = facts.ask(Calls)
        self.pure = facts.ask(Unchanged)

    def acts(self, e: ast.expr) -> bool:
        """Whether ``e`` is seen to do more than to give a tensor, or to give another one each time."""
        called = [self.calls.of(n) for n in ast.walk(e) if isinstance(n, ast.Call)]
        return any((c.writes or c.sets) and not c.runs for c in called) or any(map(self.pure.drawn_by, ast.walk(e)))

    def is_made(self, e: ast.expr, deep: int = _DEEP) -> bool:
        """Whether ``e`` is made of attributes of the module and of Python values: of nothing that a tensor holds."""
        for n in ast.walk(e):
            if not isinstance(n, ast.Name) or not self.inference.definitions_of_root(n):
                continue  # what is no name, or one of the file
            parent, held = self.syntax.parents[n], self.inference.of(n)
            if isinstance(parent, ast.Attribute) and (parent.attr in _ASKED or self._is_module(n)):
                continue
            if held.is_tensor or held.data:
                return False
            if held.kind is not Kind.PYTHON and not self._named_settled(n, deep):
                return False
        return True

    def _named_settled(self, name: ast.Name, deep: int) -> bool:
        """Whether all that ``name`` can be is settled: what is assigned, what this file hands over for a parameter."""
        found: list[ast.expr] = []
        for d in self.inference.definitions(name):
            held = [d.value] if d.how == "assign" and not d.path and d.value is not None else self.callees.given(d)
            if not held or not deep:
                return False
            found += held
        return bool(found) and all(self.is_made(e, deep - 1) for e in found)

    def _is_module(self, name: ast.Name) -> bool:
        """Whether what is read of ``name`` is the module's: of ``self``, or of what a buffer is given to."""
        parent, function = self.syntax.parents[name], self.syntax.function_of(name)
        if self.inference.instance_attribute(parent) is not None:
            return True
        calls = self.syntax.own(function, ast.Call) if function is not None else []
        return any(isinstance(c, ast.Call) and ast.unparse(c.func) == f"{name.id}.register_buffer" for c in calls)
