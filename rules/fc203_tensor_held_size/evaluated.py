"""Whether a statement evaluates an expression in it, whatever happens."""

from __future__ import annotations

import ast

from patcher.facts.syntax.tree import Syntax

_EVALUATING = (ast.BinOp, ast.UnaryOp, ast.Call, ast.keyword, ast.Tuple, ast.Attribute)


def surely_evaluated(node: ast.expr, statement: ast.stmt, syntax: Syntax) -> tuple[str, ast.expr] | None:
    """The text before the value of ``statement``, and that value, when it is evaluated only with ``node``.

    None for statements other than ``name = value`` and ``return value``, and where the value is more than ``node``
    and takes several lines.
    """
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            start = f"{name} = "
        case ast.Return(value=ast.expr() as value):
            start = "return "
        case _:
            return None
    around: ast.AST = node
    while around is not value:
        around = syntax.parents[around]
        if not isinstance(around, _EVALUATING) or statement.lineno != statement.end_lineno:
            return None
    return start, value
