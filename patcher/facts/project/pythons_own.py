"""Expressions that only ever stand for objects of Python's own types: texts, numbers, dates.

No class of a project has such objects, and nobody puts a function under a name on one.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cached_property

from patcher.facts.syntax.tree import Syntax

#: Modules whose functions, and methods of what these give, give nothing that they were handed, or made by it: unlike
#: ``math.floor``, which asks the object, or ``html.unescape``. One function is no better.
_MODULES = frozenset("re regex datetime time unicodedata base64 hashlib".split())
_PASSING = frozenset({"escape"})
#: Builtins that do not, either.
_MAKERS = frozenset("str bytes bytearray int float bool complex chr repr ascii format hex oct bin ord len".split())
_DEPTH = 8


class PythonsOwn:
    """Answers for one module; kept by name, since a name is asked for wherever a method of it is called."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self._names: dict[tuple[ast.AST, str], bool] = {}

    def holds(self, e: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether ``e`` can be nothing else."""
        if isinstance(e, (ast.Constant, ast.JoinedStr)):
            return True
        if isinstance(e, ast.Name):
            return self._name(e, depth)
        if not isinstance(e, ast.Call) or not depth:
            return False
        func = e.func
        if isinstance(func, ast.Name) and func.id in _MAKERS:
            return self.syntax.is_builtin(func)
        if self._from_module(func):
            return True
        return isinstance(func, ast.Attribute) and self.holds(func.value, depth - 1)

    def _from_module(self, func: ast.expr) -> bool:
        what = self.syntax.qualified(func)
        return what is not None and what.partition(".")[0] in _MODULES and what.rpartition(".")[2] not in _PASSING

    def _name(self, name: ast.Name, depth: int) -> bool:
        if not depth or name.id in self._shared:
            return False
        for scope in self.syntax.around(name).scopes:
            if self.syntax.binds(scope, name.id) and not isinstance(scope, ast.ClassDef):
                return self._bound(scope, name.id, depth)
        return False

    def _bound(self, scope: ast.AST, name: str, depth: int) -> bool:
        """Whether all that binds ``name`` in ``scope`` binds it to such an object."""
        known = self._names.get((scope, name))
        if known is None:
            self._names[scope, name] = False  # what it is bound to may be made of it
            imported = any(n == name and s in (scope, None) for n, _, s in self.syntax.all_imports)
            bindings = self._bindings[scope, name]
            known = not imported and bool(bindings) and all(self._binding(b, depth - 1) for b in bindings)
            self._names[scope, name] = known
        return known

    def _binding(self, node: ast.AST, depth: int) -> bool:
        parent = self.syntax.parents[node]
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if isinstance(parent, ast.Assign) and node in parent.targets:
                return self.holds(parent.value, depth)
            if (
                isinstance(parent, (ast.AnnAssign, ast.NamedExpr))
                and parent.target is node
                and parent.value is not None
            ):
                return self.holds(parent.value, depth)
        return False

    @cached_property
    def _bindings(self) -> defaultdict[tuple[ast.AST, str], list[ast.AST]]:
        """Scope and name -> the nodes that bind it there, imports aside."""
        found: defaultdict[tuple[ast.AST, str], list[ast.AST]] = defaultdict(list)
        syntax = self.syntax
        for d in (*syntax.functions, *syntax.by_type[ast.ClassDef]):
            found[syntax.around(d).scopes[0], d.name].append(d)
        for n in (*syntax.by_type[ast.Name], *syntax.by_type[ast.arg], *syntax.by_type[ast.ExceptHandler]):
            if not isinstance(n, ast.Name):
                name = n.arg if isinstance(n, ast.arg) else n.name  # type: ignore[attr-defined]
                found[syntax.around(n).scopes[0], name].append(n)
            elif not isinstance(n.ctx, ast.Load):
                found[syntax.around(n).scopes[0], n.id].append(n)
        return found

    @cached_property
    def _shared(self) -> frozenset[str]:
        """Names that a function binds for others, or that a pattern does."""
        by_type = self.syntax.by_type
        found = {name for n in (*by_type[ast.Global], *by_type[ast.Nonlocal]) for name in n.names}  # type: ignore[attr-defined]
        for kind in ("MatchAs", "MatchStar", "MatchMapping"):
            for n in by_type[getattr(ast, kind)] if hasattr(ast, kind) else ():
                found |= {getattr(n, "name", None) or "", getattr(n, "rest", None) or ""}
        return frozenset(found)
