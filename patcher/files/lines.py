r"""Lines as Python counts them: only ``\n``, ``\r\n`` and ``\r`` end one (``str.splitlines`` knows others)."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TypeAlias, TypeVar

L = TypeVar("L", bound=Hashable)

_FORM_FEED = re.compile(r"(?:[ \t]*\f)+")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$")


def split_lines(text: str) -> list[str]:
    """The lines of ``text``, with their endings."""
    return _LINE.findall(text)


#: What is done with ``old[start:stop]``, and ``new[first:last]`` which comes of it: tag, start, stop, first, last.
Opcode: TypeAlias = tuple[str, int, int, int, int]


def opcodes(old: Sequence[L], new: Sequence[L]) -> list[Opcode]:
    """How ``old`` becomes ``new``, as difflib tells it, but in about linear time.

    difflib compares only what lies between lines that either side has once. Both ends that are the same are left out,
    too: a line there is not matched with one of the middle.
    """
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    anchors = _anchors(old[head : len(old) - tail], new[head : len(new) - tail])
    found: list[Opcode] = [("equal", 0, head, 0, head)]
    ends = [*((i + head, j + head, 1) for i, j in anchors), (len(old) - tail, len(new) - tail, tail)]
    for stop, last, same in ends:
        start, first = found[-1][2], found[-1][4]
        between = difflib.SequenceMatcher(None, old[start:stop], new[first:last]).get_opcodes()
        found += [(tag, i1 + start, i2 + start, j1 + first, j2 + first) for tag, i1, i2, j1, j2 in between]
        found.append(("equal", stop, stop + same, last, last + same))
    joined: list[Opcode] = []
    for tag, i1, i2, j1, j2 in found:
        if joined and joined[-1][0] == tag == "equal":
            _, i1, _, j1, _ = joined.pop()
        joined.append((tag, i1, i2, j1, j2))
    return [code for code in joined if code[1] < code[2] or code[3] < code[4]]


def _anchors(old: Sequence[L], new: Sequence[L]) -> list[tuple[int, int]]:
    """Where the lines are that both sides have once, as far as they are in the same order."""
    of_old, of_new = Counter(old), Counter(new)
    here = [i for i, line in enumerate(old) if of_old[line] == of_new[line] == 1]
    there = [j for j, line in enumerate(new) if of_old[line] == of_new[line] == 1]
    same = difflib.SequenceMatcher(None, [old[i] for i in here], [new[j] for j in there]).get_matching_blocks()
    return [(here[i + k], there[j + k]) for i, j, size in same for k in range(size)]


def as_around(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """``new``, made of ``old``, where a line that is the same keeps its form feed, and another ends as those around it.

    What makes new lines knows one kind of ending, and no form feeds.
    """
    endings = {_ending(line) for line in old} - {""}
    if len(endings) < 2 and not any("\f" in line for line in old):
        return list(new)
    kept: list[str] = []
    for what, start, stop, first, last in opcodes([_bare(line) for line in old], [_bare(line) for line in new]):
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
