"""What one module doubts: what may be None, what may be missing."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping

from patcher.facts.syntax.tree import FunctionNode, Syntax, dotted

_CHOICES = (ast.Constant, ast.IfExp, ast.BoolOp)
Owner = Callable[[ast.AST], tuple[ast.AST | None, str | None]]


class Doubts:
    """One look at a module.

    ``found``: "function()" that returns None, "callee:argument" (keyword or position) that is passed None, "?name" for
    an attribute that ``hasattr`` or a ``getattr`` with a default asks for.
    """

    def __init__(self, syntax: Syntax, module: str, imports: Mapping[str, str], owner: Owner) -> None:
        self.syntax = syntax
        self.module = module
        self.imports = imports
        self.found = {doubt for n in syntax.by_type[ast.Call] for doubt in self._call(n)}
        for n in syntax.by_type[ast.Return]:
            function: FunctionNode | None = owner(n)[0]  # type: ignore[assignment]
            if function is not None and isinstance(n.value, ast.Constant) and n.value.value is None:
                self.found.add(f"{module}.{syntax.qualname(function)}()")

    def _call(self, n: ast.Call) -> Iterator[str]:
        match n:
            case ast.Call(func=ast.Name(id="hasattr"), args=[_, ast.Constant(value=name)]):
                yield f"?{name!s}"
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), _]):
                yield f"?{name!s}"
        nones = [str(i) for i, a in enumerate(n.args) if type(a) in _CHOICES and _maybe_none(a)]
        nones += [str(k.arg) for k in n.keywords if type(k.value) in _CHOICES and _maybe_none(k.value)]
        if nones:
            yield from (f"{callee}:{key}" for callee in self._callees(n) for key in nones)

    def _callees(self, n: ast.Call) -> Iterator[str]:
        names = [dotted(n.func)]
        cls = self.syntax.class_of(n)
        if isinstance(n.func, ast.Attribute) and n.func.attr == "__init__" and cls is not None:
            names = [dotted(b) for b in cls.bases]
        for text in names:
            if text is not None:
                root, _, rest = text.partition(".")
                base = self.imports.get(root, f"{self.module}.{root}")
                yield f"{base}.{rest}" if rest else base


def _maybe_none(e: ast.expr) -> bool:
    parts = [e.body, e.orelse] if isinstance(e, ast.IfExp) else e.values if isinstance(e, ast.BoolOp) else [e]
    return any(isinstance(p, ast.Constant) and p.value is None for p in parts)
