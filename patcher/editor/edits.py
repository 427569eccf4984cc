"""Changes of a text as whole lines, and the comment that silences a finding. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from patcher.files.lines import opcodes, split_lines
from patcher.results import Reported

_LISTED = re.compile(r"#\s*fix-compile:\s*ignore\s*\[([^\[\]]*)\]")


@dataclass(frozen=True)
class LineEdit:
    """The lines from ``first`` up to ``last``, which stays (both from 0), become ``text``, with its line endings."""

    first: int
    last: int
    text: str


def line_edits(before: str, after: str) -> tuple[LineEdit, ...]:
    """What makes ``after`` of ``before``, from top to bottom."""
    old, new = split_lines(before), split_lines(after)
    changes = [code for code in opcodes(old, new) if code[0] != "equal"]
    return tuple(LineEdit(i1, i2, "".join(new[j1:j2])) for _, i1, i2, j1, j2 in changes)


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
