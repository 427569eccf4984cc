"""Where nodes stand, and what an edit touches."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from patcher.rule import Code, Decorate, Edit, Enclose, Insert, MoveTail, NameArms, Replace, ReplaceStatements

_HOLE = re.compile(r"\{\d+\}")

Span = tuple[int, int, int, int]


class EditError(Exception):
    """A fix that cannot be made: a bug of the rule."""


def span_of(node: ast.AST) -> Span:
    """(line, column, end line, end column) of ``node``, columns in UTF-8 bytes as ``ast`` counts them."""
    return (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)  # type: ignore[attr-defined]


def targets_of(edit: Edit) -> tuple[ast.AST, ...]:
    """The nodes that ``edit`` replaces, or stands beside."""
    match edit:
        case Replace(target=target):
            return (target,)
        case ReplaceStatements(targets=targets) | Enclose(targets=targets):
            return targets
        case Insert(anchor=anchor):
            return (anchor,)
        case Decorate(target=target) | MoveTail(target=target) | NameArms(target=target):
            return (target,)


def rewritten(edit: Edit) -> tuple[int, int] | None:
    """First and last line of what is other code with ``edit``, runs elsewhere or only sometimes."""
    if isinstance(edit, MoveTail):
        moved = edit.last or edit.target.body[-1]
        return edit.first.lineno, moved.end_lineno or moved.lineno
    if not isinstance(edit, (Replace, ReplaceStatements, Enclose, NameArms)):
        return None
    targets = (edit.target,) if isinstance(edit, (Replace, NameArms)) else edit.targets
    return targets[0].lineno, targets[-1].end_lineno or targets[-1].lineno


def nodes_of(edit: Edit) -> Iterator[ast.AST]:
    """The targets of ``edit`` and every expression that its new code quotes."""
    yield from targets_of(edit)
    for code in _codes(edit):
        yield from parts_of(code)


def says(edit: Edit, name: str) -> bool:
    """Whether the new code of ``edit`` says ``name`` (".name": as an attribute), other than in a text or a quote."""
    return any(_says(code, name) for code in _codes(edit))


def _codes(edit: Edit) -> list[Code]:
    """All new code of ``edit``."""
    codes = [*(edit.code if isinstance(edit.code, tuple) else (edit.code,))]
    if isinstance(edit, MoveTail):
        codes += [edit.header, *filter(None, (edit.result,))]
    if isinstance(edit, NameArms):
        codes += [*edit.headers, *edit.results]
    return codes


def _says(code: Code, name: str) -> bool:
    attribute = name.startswith(".")
    if name in code.template:
        lines = io.StringIO(_HOLE.sub(" _ ", code.template).replace("{{", "{").replace("}}", "}"))
        before = ""
        try:
            for token in tokenize.generate_tokens(lines.readline):
                if token.type == tokenize.NAME and token.string == name.lstrip(".") and (before == ".") is attribute:
                    return True
                before = token.string
        except (tokenize.TokenError, SyntaxError):
            return True
    return any(_says(part, name) for part in code.parts if isinstance(part, Code))


def parts_of(code: Code) -> Iterator[ast.expr]:
    """The expressions that ``code`` quotes."""
    for part in code.parts:
        if isinstance(part, Code):
            yield from parts_of(part)
        else:
            yield part
