r"""Lines as Python counts them: only ``\n``, ``\r\n`` and ``\r`` end one (``str.splitlines`` knows others)."""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


def split_lines(text: str) -> list[str]:
    """The lines of ``text``, with their endings."""
    return _LINE.findall(text)


#: New lines are no shorter than these for the sake of a file with short ones, and no longer than those.
_NARROW, _WIDE = 88, 119
#: A text with fewer lines does not show how long its author lets them be.
_TELLING = 60


def line_length(text: str, limit: int | None = None) -> int:
    """How long a new line of ``text`` may be: ``limit``, what the project says.

    Where it says nothing: as the longest line there is, within reason; in a short text, what is usual.
    """
    if limit is not None:
        return limit
    lines = text.split("\n")
    return max(_NARROW, min(_WIDE, max(map(len, lines)))) if len(lines) > _TELLING else _WIDE
