"""Explicit graph breaks: which statements make one, under a guard, by an alias or by a function of the module too.

Such a statement may be taken out, so a name counts only when nothing else in the file is ever bound to it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.imports import bindings_of_import
from patcher.facts.tables import torch_api as api

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_BINDING = (*_DEFINITIONS, *_IMPORTS, ast.arg, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.Name)


class GraphBreaks(Analysis):
    """What stands for ``torch._dynamo.graph_break`` in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[tuple[str, frozenset[str]], bool] = {}

    def is_break(self, statement: ast.stmt) -> bool:
        """Whether ``statement`` does nothing but break the graph (``graph_break()``, or an ``if`` around it)."""
        match statement:
            case ast.Expr(value=ast.Call(func=func, args=[], keywords=[])):
                return self._stands_for(func, api.GRAPH_BREAK)
            case ast.If(test=test, body=body, orelse=[]):
                return all(map(self.is_break, body)) and self._only_asks(test)
        return False

    def _only_asks(self, test: ast.expr) -> bool:
        """Whether ``test`` only asks whether code is being compiled, and whether a name of the module is there."""
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                return all(map(self._only_asks, values))
            case ast.Call(func=func, args=[], keywords=[]):
                return self._stands_for(func, api.EAGER_GUARDS)
            case ast.Compare(left=ast.Name() as name, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
                return self._stands_for(name, api.GRAPH_BREAK) or self._stands_for(name, api.EAGER_GUARDS)
        return self._stands_for(test, api.GRAPH_BREAK)

    def _stands_for(self, func: ast.expr, targets: frozenset[str]) -> bool:
        """Whether ``func`` is one of ``targets`` wherever it is called: by import or as an alias."""
        if any(self.project.replaces(t.rpartition(".")[2]) for t in targets):
            return False  # somebody replaces PyTorch's own
        if not isinstance(func, ast.Name):
            return self.syntax.qualified(func) in targets
        key = func.id, targets
        if key not in self._known:
            self._known[key] = False  # a function that calls itself ends here
            means = [self._meaning(n, func.id, targets) for n in self._bindings[func.id]]
            ours = self.project.whole and not self.project.replaces(func.id) and not self._writes_globals
            starred = any(alias.name == "*" for n in self.syntax.by_type[ast.ImportFrom] for alias in n.names)
            self._known[key] = True in means and False not in means and ours and not starred
        return self._known[key]

    @cached_property
    def _bindings(self) -> defaultdict[str, list[ast.AST]]:
        """Name -> all that binds it, in whatever scope."""
        found: defaultdict[str, list[ast.AST]] = defaultdict(list)
        for node in (n for kind in _BINDING for n in self.syntax.by_type[kind]):
            if isinstance(node, _IMPORTS):
                for name, _ in bindings_of_import(node, self.syntax.package):
                    found[name].append(node)
            elif not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
                bound = getattr(node, "id", None) or getattr(node, "arg", None) or getattr(node, "name", None)
                found[str(bound)].append(node)
        return found

    @cached_property
    def _writes_globals(self) -> bool:
        """Whether the module may bind any name of its own: ``globals()[name] = ...``."""
        return not self.syntax.names_in(self.syntax.tree).isdisjoint({"globals", "vars", "exec"})

    def _meaning(self, node: ast.AST, name: str, targets: frozenset[str]) -> bool | None:
        """What binds the module's ``name``: a target (True), one that does nothing (None), or neither (False)."""
        match node:
            case ast.Import() | ast.ImportFrom():
                return {w for n, w in bindings_of_import(node, self.syntax.package) if n == name} <= targets
            case ast.FunctionDef(decorator_list=[], body=body):
                body = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
                if all(isinstance(s, ast.Pass) for s in body):
                    return None
                return targets == api.GRAPH_BREAK and all(map(self.is_break, body))
            case ast.Name() if isinstance(statement := self.syntax.parents[node], ast.Assign):
                if isinstance(statement.value, ast.Constant) and statement.value.value is None:
                    return None
                single = isinstance(statement.targets[0], ast.Name) and self.syntax.function_of(statement) is None
                return single and self._stands_for(statement.value, targets)
        return False
