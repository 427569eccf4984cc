"""Which Python a text needs that this one cannot parse."""

from __future__ import annotations

import re
import sys

from patcher.files.lines import split_lines

#: What a line says that only newer versions take; the first that fits.
_SIGNS: tuple[tuple[tuple[int, int], re.Pattern[str]], ...] = (
    ((3, 11), re.compile(r"^\s*except\s*\*")),
    ((3, 12), re.compile(r"^\s*type\s+\w+\s*(\[.*\]\s*)?=[^=]")),
    ((3, 12), re.compile(r"^\s*((async\s+)?def|class)\s+\w+\s*\[")),
    ((3, 13), re.compile(r"^\s*((async\s+)?def|class|type)\s+\w+\s*\[[^\]]*=[^\]]*\]")),
    ((3, 14), re.compile(r"(?<![\w'\"])([tT][rR]?|[rR][tT])(['\"])")),
)
_FSTRING = re.compile(r"(?<![\w'\"])([fF][rR]?|[rR][fF])(['\"]).*\{.*(\2|\\|#)")


def needed(text: str, error: SyntaxError) -> tuple[int, int] | None:
    """The version from which on Python takes the line of ``error``, when that is newer than this one."""
    lines = split_lines(text)
    line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
    found = [version for version, sign in _SIGNS if sign.search(line)]
    if "f-string" in str(error.msg) or _FSTRING.search(line):
        found.append((3, 12))  # quotes of the string's own kind, comments and backslashes between the braces
    newest = max(found, default=None)
    return newest if newest is not None and newest > sys.version_info[:2] else None
