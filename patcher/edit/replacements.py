"""From a text before and after to the regions of it that are other text then."""

from __future__ import annotations

from patcher.files.lines import opcodes, split_lines
from patcher.results import TextEdit


def replacements(before: str, after: str) -> tuple[TextEdit, ...]:
    """What has to be put in the place of what, in whole lines, in the order of ``before``; none overlaps another."""
    old, new = split_lines(before), split_lines(after)
    return tuple(
        TextEdit(*_place(old, i1), *_place(old, i2), "".join(new[j1:j2]))
        for tag, i1, i2, j1, j2 in opcodes(old, new)
        if tag != "equal"
    )


def _place(lines: list[str], index: int) -> tuple[int, int]:
    """Line and column, from 1, of the beginning of ``lines[index]``, or of the end of the text."""
    if index < len(lines) or not lines or lines[-1].endswith(("\n", "\r")):
        return index + 1, 1
    return len(lines), len(lines[-1]) + 1
