"""Other names of functions and classes: what a name of a module, or of a class, is bound to without a ``def``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from patcher.facts.syntax.tree import Syntax, dotted


def aliases(syntax: Syntax, resolve: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """``name`` and the dotted things that it may stand for; "Class.name" for what stands in a class.

    ``relu = F.relu``, ``apply = Function.apply``, ``half = partial(scaled, 0.5)``, ``SOLVERS = {"euler": Euler}``.
    """
    yield from _bound(syntax.tree.body, "", resolve)
    for cls in syntax.by_type[ast.ClassDef]:
        name = syntax.qualname(cls) if isinstance(cls, ast.ClassDef) else None
        if name is not None and isinstance(cls, ast.ClassDef):
            yield from _bound(cls.body, f"{name}.", resolve)


def _bound(body: list[ast.stmt], within: str, resolve: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    for s in body:
        targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []
        value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign)) else None
        for target in targets:
            if isinstance(target, ast.Name) and value is not None:
                yield from ((within + target.id, resolve(text)) for text in _meant(value))


def _meant(value: ast.expr) -> Iterator[str]:
    """What ``value`` names, in a display or as an argument too; not what is called to make it."""
    match value:
        case ast.Name() | ast.Attribute():
            if (text := dotted(value)) is not None:
                yield text
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _meant(part)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _meant(body)
            yield from _meant(orelse)
        case ast.Call(args=args, keywords=keywords):
            for part in (*args, *(k.value for k in keywords)):
                yield from _meant(part)
