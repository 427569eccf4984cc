"""Functions that hand one of their arguments back: ``def default(v, d): return v if exists(v) else d``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from patcher.facts.syntax.tree import FunctionNode


def chosen_parameters(function: FunctionNode, nodes: Collection[ast.AST]) -> frozenset[str]:
    """The parameters of which ``function`` returns one, whatever it is called with; empty where it may give more.

    ``nodes``: all of the function. Which one it is, is not asked.
    """
    returned = [n for n in nodes if isinstance(n, ast.Return)]
    if not returned or not isinstance(function.body[-1], ast.Return) or function.decorator_list:
        return frozenset()
    if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)) for n in nodes):
        return frozenset()
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    names = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)} - bound
    found = [part for r in returned for part in _parts(r.value)]
    given = {part.id for part in found if isinstance(part, ast.Name)}
    return (
        frozenset(given)
        if len(given) > 1 and all(isinstance(p, ast.Name) and p.id in names for p in found)
        else frozenset()
    )


def _parts(e: ast.expr | None) -> Iterator[ast.expr | None]:
    match e:
        case ast.IfExp(body=body, orelse=orelse):
            yield from _parts(body)
            yield from _parts(orelse)
        case ast.BoolOp(values=values):
            for value in values:
                yield from _parts(value)
        case _:
            yield e
