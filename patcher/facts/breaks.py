"""Explicit graph breaks: which statements make one, also under a guard, through an alias or through a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts import torch_api as api
from patcher.facts.syntax import Syntax, dotted

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class GraphBreaks:
    """What stands for ``torch._dynamo.graph_break`` in one module."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self._known: dict[tuple[ast.AST, frozenset[str]], bool] = {}

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
        if self.syntax.qualified(func) in targets:
            return True
        method = self.syntax.method_of(func)
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and method is not None:
            cls = self.syntax.parents[method]
            owners = {cls.name} if isinstance(cls, ast.ClassDef) else set()
            owners |= {a.arg for a in method.args.args[:1]}
            if func.value.id in owners and isinstance(cls, ast.ClassDef):
                own = [s for s in cls.body if isinstance(s, ast.FunctionDef) and s.name == func.attr]
                return len(own) == 1 and self._wraps(own[0], targets)
        return isinstance(func, ast.Name) and self._bound(func, targets)

    def _bound(self, name: ast.Name, targets: frozenset[str]) -> bool:
        """Whether every binding of the module's name is one of ``targets``, or its stand-in where that is missing."""
        if any(isinstance(p, (*_FUNCTIONS, ast.Lambda)) and self.syntax.binds(p, name.id) for p in self._scopes(name)):
            return False
        key = (self.syntax.tree, targets | {name.id})
        if key not in self._known:
            self._known[key] = False  # a function that calls itself ends here
            found = list(self._bindings(name.id, targets))
            self._known[key] = True in found and False not in found
        return self._known[key]

    def _scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        return self.syntax.ancestors(node)

    def _bindings(self, name: str, targets: frozenset[str]) -> Iterator[bool | None]:
        """For each binding at module level: is it a target (True), a stand-in (None) or something else (False)."""
        for bound, what, scope in self.syntax.all_imports:
            if bound == name and scope is None:
                yield what in targets
        for assign in self.syntax.by_type[ast.Assign]:
            assert isinstance(assign, ast.Assign)
            if self._at_module_level(assign) and any(isinstance(t, ast.Name) and t.id == name for t in assign.targets):
                yield self._value(assign.value, targets)
        for function in self.syntax.by_type[ast.FunctionDef]:
            assert isinstance(function, ast.FunctionDef)
            if function.name == name and self._at_module_level(function):
                yield True if self._wraps(function, targets) else None if _does_nothing(function.body) else False

    def _value(self, value: ast.expr, targets: frozenset[str]) -> bool | None:
        match value:
            case ast.Constant(value=None):
                return None
            case ast.Lambda(body=ast.Constant()):
                return None
            case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=str(attribute)), *_]):
                return f"{self.syntax.qualified(base)}.{attribute}" in targets
        return self.syntax.qualified(value) in targets if dotted(value) else False

    def _wraps(self, function: ast.FunctionDef, targets: frozenset[str]) -> bool:
        """Whether ``function`` does nothing but break the graph."""
        body = [s for s in function.body if not _is_docstring(s)]
        return targets == api.GRAPH_BREAK and bool(body) and all(map(self.is_break, body))

    def _at_module_level(self, node: ast.AST) -> bool:
        return not any(isinstance(p, (*_FUNCTIONS, ast.ClassDef)) for p in self.syntax.ancestors(node))


def _is_docstring(s: ast.stmt) -> bool:
    return isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)


def _does_nothing(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(s, ast.Pass)
        or _is_docstring(s)
        or (isinstance(s, ast.Return) and (s.value is None or isinstance(s.value, ast.Constant)))
        for s in body
    )
