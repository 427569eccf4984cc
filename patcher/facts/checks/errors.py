"""Which statements end in an error, and what it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from patcher.facts.syntax.tree import dotted, walk

_LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.With, ast.AsyncWith)


def raises(block: Sequence[ast.stmt]) -> bool:
    """Whether running ``block`` always ends in an error of its own."""
    last = block[-1] if block else None
    if not isinstance(last, (ast.If, ast.Raise)) or any(isinstance(n, _LEAVING) for s in block for n in walk(s)):
        return False
    if isinstance(last, ast.If):
        return raises(last.body) and raises(last.orelse)
    return last.exc is not None


def raised(block: Sequence[ast.stmt]) -> list[ast.expr]:
    """The errors that ``block`` raises, as it writes them."""
    return [n.exc for s in block for n in ast.walk(s) if isinstance(n, ast.Raise) and n.exc is not None]


def error_name(error: ast.expr) -> str:
    """The last name of the class of ``error``."""
    called = error.func if isinstance(error, ast.Call) else error
    return (dotted(called) or "").rpartition(".")[2]


def said(message: ast.expr | None) -> str:
    """The text of ``message`` as far as it is written down, with dots in the place of the rest."""
    match message:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(str(v.value) if isinstance(v, ast.Constant) else "..." for v in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return said(left) + said(right)
        case ast.BinOp(left=left, op=ast.Mod()):
            return re.sub(r"%[-+ #0-9.]*[a-zA-Z]", "...", said(left))
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return re.sub(r"\{[^{}]*\}", "...", said(text))
        case ast.Lambda(body=body):
            return said(body)
    return ""
