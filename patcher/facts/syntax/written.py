"""What is written down: numbers, what a call is given and how it is called, what parameters default to."""

from __future__ import annotations

import ast
from typing import TypeGuard


def integer(e: ast.expr | None) -> int | None:
    """The int that is written there, also a negative one."""
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        value = integer(e.operand)
        return None if value is None else -value
    return e.value if isinstance(e, ast.Constant) and type(e.value) is int else None


def is_none(e: ast.expr) -> bool:
    """``None``."""
    return isinstance(e, ast.Constant) and e.value is None


def is_literal(e: ast.expr) -> bool:
    """A constant, also a text that is written as a format and fills nothing in: ``f"negative index"``."""
    if isinstance(e, ast.JoinedStr):
        return all(isinstance(v, ast.Constant) for v in e.values)
    return isinstance(e, ast.Constant)


def is_whole(e: ast.expr) -> bool:
    """``:`` or ``...``."""
    if isinstance(e, ast.Slice):
        return e.lower is e.upper is e.step is None
    return isinstance(e, ast.Constant) and e.value is ...


def is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    """Whether ``node`` is a name that gets a value there."""
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def short(node: ast.AST) -> str:
    """``node`` on one line, for a reason."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."


def given(call: ast.Call) -> list[ast.expr]:
    """All that ``call`` hands over, by position and by name."""
    return [*call.args, *(k.value for k in call.keywords)]


def parsed(annotation: ast.expr) -> ast.expr | None:
    """``annotation``, also one in quotes; None when what stands there is no expression."""
    if not isinstance(annotation, ast.Constant) or not isinstance(annotation.value, str):
        return annotation
    try:
        return ast.parse(annotation.value, mode="eval").body
    except SyntaxError:
        return None


def all_parameters(a: ast.arguments) -> list[ast.arg]:
    """All parameters, in order."""
    return [*a.posonlyargs, *a.args, *filter(None, (a.vararg,)), *a.kwonlyargs, *filter(None, (a.kwarg,))]


def defaults(a: ast.arguments) -> dict[str, ast.expr]:
    """Name -> default, of the parameters that have one."""
    positional = [*a.posonlyargs, *a.args]
    found = {p.arg: d for p, d in zip(reversed(positional), reversed(a.defaults), strict=False)}
    return found | {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}


def one_of(e: ast.expr | None) -> list[ast.expr]:
    """The expressions one of which ``e`` is."""
    match e:
        case ast.NamedExpr(value=value):
            return [value]
        case ast.IfExp(body=a, orelse=b):
            return [a, b]
        case ast.BoolOp(values=parts):
            return parts
    return []
