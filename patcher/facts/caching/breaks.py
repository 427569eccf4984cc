"""Explicit graph breaks: which statements make one, under a guard, by an alias or by a function of the module too.

Such a statement may be taken out, so a name counts only when it is sure that nothing else is ever called by it.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.syntax.imports import bindings_of_import
from patcher.facts.syntax.tree import dotted
from patcher.facts.tables import torch_api as api

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.ClassDef, ast.Lambda, ast.Module)
_IMPORTS = (ast.Import, ast.ImportFrom)
_BINDING = (*_FUNCTIONS, *_IMPORTS, ast.ClassDef, ast.arg, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.Name)


class GraphBreaks(Analysis):
    """What stands for ``torch._dynamo.graph_break`` in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[tuple[ast.AST, str, frozenset[str]], bool] = {}

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
            case ast.Name():
                return self._stands_for(test, api.GRAPH_BREAK)
        return False

    def _stands_for(self, func: ast.expr, targets: frozenset[str]) -> bool:
        """Whether ``func`` is one of ``targets`` wherever it is called: by import or as an alias."""
        if any(self.project.replaces(t.rpartition(".")[2]) for t in targets):
            return False  # somebody replaces PyTorch's own
        if self._imported(func, targets):
            return True
        return isinstance(func, ast.Name) and self._is_alias(func, targets)

    # --- names ------------------------------------------------------------------------------------------------------

    @cached_property
    def _bindings(self) -> dict[tuple[ast.AST, str], list[ast.AST]]:
        """(scope, name) -> what binds the name there; what ``global`` and ``nonlocal`` say is not followed."""
        found: defaultdict[tuple[ast.AST, str], list[ast.AST]] = defaultdict(list)
        for node in (n for kind in _BINDING for n in self.syntax.by_type[kind]):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                continue
            scope = next(p for p in self.syntax.ancestors(node) if isinstance(p, _SCOPES))
            for name in self._names(node):
                found[scope, name].append(node)
        return found

    def _names(self, node: ast.AST) -> list[str]:
        if isinstance(node, _IMPORTS):
            starred = ["*" for alias in node.names if alias.name == "*"]
            return starred + [name for name, _ in bindings_of_import(node, self.syntax.package)]
        name = getattr(node, "id", None) or getattr(node, "arg", None) or getattr(node, "name", None)
        return [name] if isinstance(name, str) else []

    @cached_property
    def _unsure(self) -> frozenset[str]:
        """Names that a function rebinds outside of itself."""
        statements = [*self.syntax.by_type[ast.Global], *self.syntax.by_type[ast.Nonlocal]]
        return frozenset(name for s in statements for name in s.names)  # type: ignore[attr-defined]

    @cached_property
    def _writes_globals(self) -> bool:
        """Whether the module may bind any name of its own: ``globals()[name] = ...``."""
        for call in self.syntax.by_type[ast.Call]:
            parent, what = self.syntax.parents[call], dotted(call.func)
            reads = isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Load)
            if what == "exec" or (what in ("globals", "vars") and not call.args and not reads):
                return True
        return False

    def _bound(self, name: ast.Name) -> tuple[ast.AST | None, list[ast.AST]]:
        """The scope that ``name`` is looked up in, and all that binds it there; no scope when that is not sure."""
        inside = False
        for scope in self.syntax.ancestors(name):
            if not isinstance(scope, _SCOPES) or (isinstance(scope, ast.ClassDef) and inside):
                continue
            inside = True
            if found := self._bindings.get((scope, name.id)):
                return (None, []) if name.id in self._unsure else (scope, found)
        return None, []

    def _imported(self, func: ast.expr, targets: frozenset[str]) -> bool:
        """Whether ``func`` is one of ``targets`` through the imports, whichever of them was the last to bind it."""
        text, root = dotted(func), func
        while isinstance(root, ast.Attribute):
            root = root.value
        if text is None or not isinstance(root, ast.Name):
            return False
        scope, found = self._bound(root)
        if isinstance(func, ast.Name) and isinstance(scope, ast.Module):
            return False  # others can reach the name, so it is an alias
        rest = text[len(root.id) :]
        return bool(found) and all(f"{what}{rest}" in targets for n in found for what in self._meanings(n, root.id))

    def _meanings(self, node: ast.AST, name: str) -> list[str]:
        """What the import ``node`` makes ``name`` stand for."""
        if not isinstance(node, _IMPORTS):
            return ["?"]
        return [what for bound, what in bindings_of_import(node, self.syntax.package) if bound == name]

    def _is_alias(self, name: ast.Name, targets: frozenset[str]) -> bool:
        """Whether every binding of the module's name is one of ``targets``, or its stand-in where that is missing."""
        scope, found = self._bound(name)
        if not isinstance(scope, ast.Module) or self._writes_globals:
            return False
        key = (scope, name.id, targets)
        if key not in self._known:
            self._known[key] = False  # a function that calls itself ends here
            means = [self._meaning(n, name.id, targets) for n in found]
            starred = (scope, "*") in self._bindings and not name.id.startswith("_")
            self._known[key] = True in means and False not in means and not starred and self._is_ours(name.id)
        return self._known[key]

    def _is_ours(self, name: str) -> bool:
        """Whether no code of the project puts something else in the place of the attribute ``name`` of anything."""
        return self.project.whole and not self.project.replaces(name)

    def _meaning(self, node: ast.AST, name: str, targets: frozenset[str]) -> bool | None:
        """What binds the module's ``name``: a target (True), one that does nothing (None), or neither (False)."""
        match node:
            case ast.Import() | ast.ImportFrom():
                return all(what in targets for what in self._meanings(node, name))
            case ast.FunctionDef():
                return True if self._wraps(node, targets) else None if _does_nothing(node) else False
            case ast.Name():
                statement = self.syntax.parents[node]
                if isinstance(statement, ast.Assign) and node in statement.targets:
                    return self._value(statement.value, targets)
                if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                    return self._value(statement.value, targets)
        return False

    def _value(self, value: ast.expr, targets: frozenset[str]) -> bool | None:
        match value:
            case ast.Constant(value=None):
                return None
            case ast.Lambda(body=ast.Constant()):
                return None
            case ast.Call(func=ast.Name(id="getattr") as func, args=[base, ast.Constant(value=str(attribute)), *rest]):
                known = self._imported(ast.Attribute(base, attribute, ast.Load()), targets)
                return (
                    known and self.syntax.is_builtin(func) and all(self._value(r, targets) is not False for r in rest)
                )
        return self._stands_for(value, targets) if dotted(value) else False

    # --- functions --------------------------------------------------------------------------------------------------

    def _wraps(self, function: ast.FunctionDef, targets: frozenset[str]) -> bool:
        """Whether ``function`` does nothing but break the graph."""
        plain = not function.decorator_list
        body = [s for s in function.body if not _is_docstring(s)]
        return targets == api.GRAPH_BREAK and plain and bool(body) and all(map(self.is_break, body))


def _is_docstring(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)


def _does_nothing(function: ast.FunctionDef) -> bool:
    return not function.decorator_list and all(
        isinstance(s, ast.Pass)
        or _is_docstring(s)
        or (isinstance(s, ast.Return) and (s.value is None or isinstance(s.value, ast.Constant)))
        for s in function.body
    )
