"""Which statements end in an error, and what it says."""

from __future__ import annotations

import ast
import itertools
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


def said(message: ast.expr | None) -> tuple[str, ...]:
    """What ``message`` says in any case, the longest first: all of it, and the whole sentences that it begins with.

    Nothing of a sentence that is put together at run time is said.
    """
    if isinstance(message, ast.Lambda):
        message = message.body
    text, whole = _constant(message)
    ends = [m.end(1) for m in _SENTENCE.finditer(text)]
    found = [text[:end] for end in ends]
    if whole and text not in found:
        found.append(text)
    worded = (" ".join(part.split()) for part in reversed(found))
    return tuple(part for part in worded if any(c.isalnum() for c in part))


def literal(text: str) -> str:
    """``text`` as a string in source code, on one line, without braces, which are holes in a template."""
    shown = repr(" ".join(text.replace("{", "(").replace("}", ")").split()))
    return f'"{shown[1:-1]}"' if shown[0] == "'" and '"' not in shown else shown


#: The end of a sentence, and what has to follow it.
_SENTENCE = re.compile(r"([.!?])(?=\s|$)")
#: Where a format begins to be filled in: ``%s``, ``{name}``.
_FILLED_IN = {ast.Mod: re.compile(r"%"), ast.Call: re.compile(r"[{}]")}


def _constant(message: ast.expr | None) -> tuple[str, bool]:
    """The text that ``message`` begins with in any case, and whether that is all."""
    match message:
        case ast.Constant(value=str(text)):
            return text, True
        case ast.JoinedStr(values=values):
            parts = [str(v.value) if isinstance(v, ast.Constant) else None for v in values]
            known = list(itertools.takewhile(lambda part: part is not None, parts))
            return "".join(filter(None, known)), len(known) == len(parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, whole = _constant(left)
            rest, all_of_it = _constant(right) if whole else ("", False)
            return first + rest, whole and all_of_it
        case ast.BinOp(left=text, op=ast.Mod()):
            return _FILLED_IN[ast.Mod].split(_constant(text)[0])[0], False
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return _FILLED_IN[ast.Call].split(_constant(text)[0])[0], False
    return "", False
