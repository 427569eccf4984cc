"""Counts in words, the same wherever they are printed."""

from __future__ import annotations

from collections.abc import Collection

#: What a run counts, by the name of its field, as one of it is called.
COUNTED = {
    "breaks": "break",
    "dropped_frames": "dropped frame",
    "recompiles": "recompile",
    "limit_hits": "recompile limit hit",
    "cudagraph_skips": "CUDA-graph skip",
}


def many(number: int, one: str, more: str = "") -> str:
    """``1 break``, ``2 breaks``."""
    return f"{number} {one if number == 1 else more or one + 's'}"


def counts(figures: object, names: Collection[str] = tuple(COUNTED)) -> str:
    """``24 breaks, 13 recompiles``: the fields of these names that are not 0; "" for none."""
    return ", ".join(many(count, COUNTED[name]) for name in names if (count := getattr(figures, name)))


def code(text: str) -> str:
    """Between backticks, as many as it takes."""
    marks = "``" if "`" in text else "`"
    return f"{marks}{text}{marks}"
