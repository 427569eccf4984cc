"""Expressions that only ever stand for objects of Python's own types: texts, numbers, dates.

No class of a project has such objects, and nobody puts a function under a name on one.
"""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import Syntax

#: Modules whose functions, and methods of what these give, give nothing that they were handed, or made by it: unlike
#: ``math.floor``, which asks the object, or ``html.unescape``. One function is no better.
_MODULES = frozenset("re regex datetime time unicodedata base64 hashlib".split())
_PASSING = frozenset({"escape"})
#: Builtins that do not, either.
_MAKERS = frozenset("str bytes bytearray int float bool complex chr repr ascii format hex oct bin ord len".split())
_DEPTH = 8


class PythonsOwn:
    """Answers for one module."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax

    def holds(self, e: ast.expr, depth: int = _DEPTH) -> bool:
        """Whether ``e`` can be nothing else."""
        if isinstance(e, (ast.Constant, ast.JoinedStr)):
            return True
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
