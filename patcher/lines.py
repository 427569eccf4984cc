r"""Lines as Python counts them: only ``\n``, ``\r\n`` and ``\r`` end one (``str.splitlines`` knows others)."""

from __future__ import annotations

import re

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


def split_lines(text: str) -> list[str]:
    """The lines of ``text``, with their endings."""
    return _LINE.findall(text)
