"""A patch taken out of a text that was edited since, line by line, where the two do not meet."""

from __future__ import annotations

import ast

from patcher.files.lines import opcodes


def without_patch(original: bytes, patched: bytes, edited: bytes) -> bytes | None:
    """``edited`` with the lines that differ in ``patched`` as they are in ``original``; None where an edit meets one.

    An edit meets a change when it is in the same lines, or in the one before or after them. What was Python before
    must be Python afterwards.
    """
    base, now, old = (text.split(b"\n") for text in (patched, edited, original))
    moved = _moved(base, now)
    result = list(now)
    for tag, start, stop, first, last in reversed(opcodes(base, old)):
        if tag == "equal":
            continue
        around = range(max(start - 1, 0), min(stop + 1, len(base)))
        first_place = moved.get(around[0])
        if first_place is None or any(moved.get(line) != first_place + line - around[0] for line in around):
            return None
        at = first_place + start - around[0]
        result[at : at + (stop - start)] = old[first:last]
    text = b"\n".join(result)
    return text if _is_python(text) or not _is_python(edited) else None


def _moved(base: list[bytes], now: list[bytes]) -> dict[int, int]:
    """Where the lines of ``base`` that were not edited are in ``now``."""
    return {
        start + step: first + step
        for tag, start, stop, first, _ in opcodes(base, now)
        if tag == "equal"
        for step in range(stop - start)
    }


def _is_python(text: bytes) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True
