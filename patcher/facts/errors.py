"""Which statements end in an error, what it says, and whether code around them may catch it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from patcher.facts.syntax import FunctionNode, Syntax, dotted

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LEAVING = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Try, ast.With, ast.AsyncWith)
#: Errors that are there to be caught.
_SIGNALS = frozenset({"StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit", "KeyboardInterrupt"})


def raises(block: Sequence[ast.stmt]) -> bool:
    """Whether running ``block`` always ends in an error of its own."""
    last = block[-1] if block else None
    if not isinstance(last, (ast.If, ast.Raise)) or any(isinstance(n, _LEAVING) for s in block for n in ast.walk(s)):
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


def why_caught(statement: ast.stmt, names: Sequence[str], syntax: Syntax) -> str | None:
    """None when nothing in the module catches an error of ``statement``, of one of ``names``, as far as can be seen."""
    if any(name in _SIGNALS for name in names):
        return "the error is there to be caught"
    child: ast.AST = statement
    for parent in syntax.ancestors(statement):
        if isinstance(parent, ast.Try) and parent.handlers and child in parent.body:
            return "the error is caught around it"
        if isinstance(parent, (ast.With, ast.AsyncWith)):
            for item in parent.items:
                e = item.context_expr
                what = syntax.qualified(e.func if isinstance(e, ast.Call) else e) or ""
                if not what.startswith(("torch.", "contextlib.nullcontext")):
                    return f"`{ast.unparse(e)}` around it may catch the error"
        endless = isinstance(parent, ast.While) and isinstance(parent.test, ast.Constant)
        if endless and not any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(parent)):
            return "the error is what ends the loop"
        child = parent
    function = syntax.function_of(statement)
    if function is not None and _called_in_try(function, syntax):
        return f"errors of `{function.name}` are caught in this file"
    return None


def _called_in_try(function: FunctionNode, syntax: Syntax) -> bool:
    """Whether a ``try`` of the module that catches errors calls something of that name."""
    for t in syntax.by_type[ast.Try]:
        assert isinstance(t, ast.Try)
        for s in t.body if t.handlers else ():
            for n in ast.walk(s):
                if isinstance(n, ast.Call) and (dotted(n.func) or "").rpartition(".")[2] == function.name:
                    return True
    return False
