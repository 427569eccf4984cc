r"""Lines as Python counts them: only ``\n``, ``\r\n`` and ``\r`` end one (``str.splitlines`` knows others)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_FORM_FEED = re.compile(r"(?:[ \t]*\f)+")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


def split_lines(text: str) -> list[str]:
    """The lines of ``text``, with their endings."""
    return _LINE.findall(text)


def as_around(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """``new``, made of ``old``, where a line that is the same keeps its form feed, and another ends as those around it.

    What makes new lines knows one kind of ending, and no form feeds.
    """
    endings = {_ending(line) for line in old} - {""}
    if len(endings) < 2 and not any("\f" in line for line in old):
        return list(new)
    kept: list[str] = []
    matcher = difflib.SequenceMatcher(
        None, [_bare(line) for line in old], [_bare(line) for line in new], autojunk=False
    )
    for what, start, stop, first, last in matcher.get_opcodes():
        if what == "equal":
            kept += old[start:stop]
            continue
        around = next(filter(None, map(_ending, old[start:stop] or reversed(old[:start]))), "")
        made = [line[: len(line) - len(_ending(line))] + (_ending(line) and around) for line in new[first:last]]
        if made and start < stop and not made[0].startswith("\f"):
            made[0] = form_feed(old[start]) + made[0]
        kept += made
    return kept


def form_feed(line: str) -> str:
    """The form feeds that a line begins with, and the blanks before them: no indentation to Python."""
    found = _FORM_FEED.match(line)
    return found[0] if found else ""


def _bare(line: str) -> str:
    return line.replace("\f", "").rstrip("\r\n")


def _ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


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
