"""The comment that silences a finding. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from patcher.files.lines import split_lines
from patcher.results import Reported

_LISTED = re.compile(r"#\s*fix-compile:\s*ignore\s*\[([^\[\]]*)\]")


def silenced(text: str, found: Reported, look: Callable[[str], Sequence[Reported]]) -> str | None:
    """``text`` with a comment that silences ``found``, and changes nothing else; None when no line takes one.

    ``look``: what is found in a text, apart from what is silenced.
    """
    lines = split_lines(text)
    before = _same(look(text), found)
    try:
        meaning = ast.dump(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError):
        return None
    for line in dict.fromkeys((found.line, found.end_line)):
        if line > len(lines):
            continue
        changed = "".join([*lines[: line - 1], _commented(lines[line - 1], found.code), *lines[line:]])
        try:
            same = ast.dump(ast.parse(changed)) == meaning  # not where the line ends inside of a string, or goes on
        except (SyntaxError, ValueError, RecursionError):
            continue
        if same and _same(look(changed), found) < before:
            return changed
    return None


def _same(reported: Sequence[Reported], found: Reported) -> int:
    """How many findings there are of that rule at that place."""
    return sum((one.code, one.line, one.column) == (found.code, found.line, found.column) for one in reported)


def _commented(line: str, code: str) -> str:
    """The line with the comment at its end, or with the code in the comment that is there."""
    if listed := _LISTED.search(line):
        return f"{line[: listed.end(1)]}, {code}{line[listed.end(1) :]}"
    bare = line.rstrip("\r\n")
    return f"{bare.rstrip()}  # fix-compile: ignore[{code}]{line[len(bare) :]}"
