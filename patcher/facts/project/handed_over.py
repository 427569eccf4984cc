"""What the calls of a file hand to methods of the instance, wherever these stand: names and places of arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.syntax.tree import Syntax
from patcher.facts.syntax.written import defaults, is_none


def handed_over(syntax: Syntax) -> Iterator[tuple[str, str]]:
    """Of each ``self.method(a, None, c, key=d)``: ("method", "0"), ("method", "2"), ("method", "key").

    Without what is None, or a parameter that is None by default: whether that is given, its own callers decide.
    """
    for call in syntax.by_type[ast.Call]:
        match call.func:
            case ast.Attribute(value=ast.Name(id="self"), attr=method):
                given = {str(i): a for i, a in enumerate(call.args)}
                if any(isinstance(a, ast.Starred) for a in call.args):
                    given = {}
                given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
                yield from ((method, place) for place, e in given.items() if not _may_be_left_out(e, syntax))


def _may_be_left_out(e: ast.expr, syntax: Syntax) -> bool:
    function = syntax.function_of(e)
    if is_none(e) or function is None or not isinstance(e, ast.Name):
        return is_none(e)
    default = defaults(function.args).get(e.id)
    return default is not None and is_none(default)
