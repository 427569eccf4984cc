"""Other names of functions and classes: what a name of a module, or of a class, is bound to without a ``def``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from patcher.facts.syntax.classes import INITIALISERS, attribute_of, self_name
from patcher.facts.syntax.tree import Syntax, dotted, own_nodes


def aliases(syntax: Syntax, resolve: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """``name`` and the dotted things that it may stand for; "Class.name" for what stands in a class.

    ``relu = F.relu``, ``apply = Function.apply``, ``half = partial(scaled, 0.5)``, ``SOLVERS = {"euler": Euler}`` (of a
    module: a class has tables of what it is configured with); and "self.slow" for "Class.step", where the initialiser
    sets ``self.step`` to it, or to one of several.
    """
    yield from _bound(syntax.tree.body, "", resolve)
    for cls in syntax.by_type[ast.ClassDef]:
        name = syntax.qualname(cls) if isinstance(cls, ast.ClassDef) else None
        if name is not None and isinstance(cls, ast.ClassDef):
            yield from _bound(cls.body, f"{name}.", resolve)
            yield from ((f"{name}.{attribute}", what) for attribute, what in _chosen(cls))


def _chosen(cls: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Attributes that the initialiser sets to a method: ``self.step = self.fast if quick else self.slow``."""
    for method in cls.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) or method.name not in INITIALISERS:
            continue
        own = self_name(method) or ""
        for n in own_nodes(method):
            for target in n.targets if isinstance(n, ast.Assign) else []:
                name = attribute_of(target, own)
                if name is not None and isinstance(n, ast.Assign):
                    yield from ((name, f"self.{m}") for m in _methods(n.value, own))


def _methods(value: ast.expr, own: str) -> Iterator[str]:
    """The attributes of the instance that ``value`` is, or one of several; not those that are called to make it."""
    match value:
        case ast.Attribute():
            if (name := attribute_of(value, own)) is not None:
                yield name
        case ast.IfExp(body=body, orelse=orelse):
            yield from _methods(body, own)
            yield from _methods(orelse, own)
        case ast.Dict(values=parts) | ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from _methods(part, own)
        case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[first, *_]):
            yield from _methods(first, own)


def _bound(body: list[ast.stmt], within: str, resolve: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    for s in body:
        targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) else []
        value = s.value if isinstance(s, (ast.Assign, ast.AnnAssign)) else None
        for target in targets:
            if within and isinstance(value, (ast.Dict, ast.List, ast.Tuple)):
                continue
            if isinstance(target, ast.Name) and value is not None:
                yield from ((within + target.id, resolve(text)) for text in _meant(value))


def _meant(value: ast.expr) -> Iterator[str]:
    """What ``value`` names, in a display or in part too; not what is called to make it, nor what that is given."""
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
        case ast.Call(func=ast.Name(id="partial") | ast.Attribute(attr="partial"), args=[first, *_]):
            yield from _meant(first)
