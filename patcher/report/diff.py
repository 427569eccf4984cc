"""Unified diffs as bytes: ``git apply`` and ``patch -p1`` take them, whatever the file's encoding and newlines."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

from patcher.files.lines import opcodes
from patcher.results import FileResult

_CONTEXT = 3
_PLAIN = frozenset(range(0x20, 0x100)) - set(b'"\\') - {0x7F}
_ESCAPES = {
    0x07: b"\\a",
    0x08: b"\\b",
    0x09: b"\\t",
    0x0A: b"\\n",
    0x0B: b"\\v",
    0x0C: b"\\f",
    0x0D: b"\\r",
    0x22: b'\\"',
    0x5C: b"\\\\",
}
_COLOURS = (
    (b"--- ", b"\x1b[1m"),
    (b"+++ ", b"\x1b[1m"),
    (b"@@", b"\x1b[36m"),
    (b"-", b"\x1b[31m"),
    (b"+", b"\x1b[32m"),
)
_RESET = b"\x1b[0m"


def file_diff(result: FileResult, path: str) -> bytes:
    """The change of one file, with ``path`` (relative, or absolute for a file elsewhere) in the header."""
    if result.before == result.after:
        return b""
    name = path.replace(os.sep, "/").lstrip("/")
    old = b"/dev/null" if result.created else _header(f"a/{name}")
    header = b"--- " + old + b"\n+++ " + _header(f"b/{name}") + b"\n"
    return header + b"".join(_hunks(_lines(result.before), _lines(result.after)))


def coloured(diff: bytes) -> bytes:
    """The same diff for a terminal."""
    painted = []
    for line in diff.split(b"\n"):
        colour = next((colour for start, colour in _COLOURS if line.startswith(start)), b"")
        painted.append(colour + line + _RESET if colour else line)
    return b"\n".join(painted)


def _header(name: str) -> bytes:
    raw = os.fsencode(name)
    if all(byte in _PLAIN for byte in raw):
        return raw + b"\t" if b" " in raw else raw  # the tab tells where a name with blanks ends
    return b'"' + b"".join(_ESCAPES.get(b) or (bytes([b]) if b in _PLAIN else b"\\%03o" % b) for b in raw) + b'"'


def _lines(data: bytes) -> list[bytes]:
    """Lines that end in a line feed, as ``patch`` counts them: a lone carriage return or a form feed ends none."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _hunks(before: list[bytes], after: list[bytes]) -> Iterator[bytes]:
    matcher = difflib.SequenceMatcher(None, before, after)
    matcher.opcodes = opcodes(before, after)  # type: ignore[attr-defined]
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        old = _range(first[1], last[2])
        new = _range(first[3], last[4])
        yield f"@@ -{old} +{new} @@\n".encode()
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_line(b" ", line) for line in before[i1:i2])
            else:
                yield from (_line(b"-", line) for line in before[i1:i2])
                yield from (_line(b"+", line) for line in after[j1:j2])


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"


def _range(start: int, stop: int) -> str:
    """Lines from 1; of an empty range, the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
