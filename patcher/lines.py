r"""Lines as Python counts them: only ``\n``, ``\r\n`` and ``\r`` end one (``str.splitlines`` knows others)."""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


def split_lines(text: str) -> list[str]:
    """The lines of ``text``, with their endings."""
    return _LINE.findall(text)


#: New lines are no shorter than these for the sake of a file with short ones, and no longer than those.
_NARROW, _WIDE = 88, 119


def line_length(text: str) -> int:
    """How long a new line of ``text`` may be: as its longest one, within reason."""
    return max(_NARROW, min(_WIDE, max(map(len, text.split("\n")), default=0)))
