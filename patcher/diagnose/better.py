"""Whether one state of the tree is better than another: counts first, and time only beyond noise."""

from __future__ import annotations

from dataclasses import dataclass

from patcher.diagnose.bench import State
from patcher.diagnose.diagnosis import Totals
from patcher.harness.measured import Figures, Tree, Warm

_COUNTS = (
    ("limit_hits", "recompile-limit hits"),
    ("dropped_frames", "dropped frames"),
    ("breaks", "breaks"),
    ("recompiles", "recompiles"),
    ("launches", "launches"),
    ("cudagraph_skips", "CUDA-graph skips"),
)
_SHARE = 0.05  # quartile ranges of a quick run are narrow by chance: less than this is no difference


@dataclass(frozen=True)
class Change:
    """From one state to another: what got better and what got worse, as ``breaks 25 -> 0``."""

    better: tuple[str, ...]
    worse: tuple[str, ...]
    faster: tuple[str, ...] = ()
    slower: tuple[str, ...] = ()

    @property
    def gain(self) -> bool:
        """Whether the later is to be preferred: something is better, and what is worse is outweighed by time."""
        if self.slower and not self.better:
            return False
        return bool(self.better or self.faster) and (not self.worse or bool(self.faster))

    @property
    def only_time(self) -> bool:
        """Whether it is the clock alone that speaks for the later."""
        return self.gain and not (self.better and not self.worse)

    @property
    def told(self) -> str:
        """All of it in one line."""
        return ", ".join((*self.better, *self.worse, *self.faster, *self.slower)) or "no count changes"


def change(before: Totals, after: Totals) -> Change:
    """By counts alone."""
    pairs = [(word, getattr(before, name), getattr(after, name)) for name, word in _COUNTS]
    return Change(
        tuple(f"{word} {was} -> {now}" for word, was, now in pairs if now < was),
        tuple(f"{word} {was} -> {now}" for word, was, now in pairs if now > was),
    )


def difference(before: tuple[State, Tree], after: tuple[State, Tree]) -> Change | None:
    """From one measured tree to another; None when one of them did not come to its end."""
    old, new = before[0].totals(before[1]), after[0].totals(after[1])
    if old is None or new is None:
        return None
    counted = change(old, new)
    faster, slower = [], []
    for name, was, now in _timed(before, after):
        if was.warm is None or now.warm is None:
            continue
        told = f"{name} {was.warm.median_ms:.3g} -> {now.warm.median_ms:.3g} ms"
        if _quicker(now.warm, was.warm):
            faster.append(told)
        elif _quicker(was.warm, now.warm):
            slower.append(told)
    if faster and slower:
        faster, slower = [], []  # one case against another says nothing about the fix
    return Change(counted.better, counted.worse, tuple(faster), tuple(slower))


def _quicker(one: Warm, other: Warm) -> bool:
    """Whether one took less time than the other, beyond noise: on the wall clock and, where it is known, in CPU time.

    The two were measured one after the other, and what else the machine did meanwhile shows on the wall clock alone.
    """
    wall = one.high_ms < other.low_ms and one.median_ms < (1 - _SHARE) * other.median_ms
    if one.cpu_ms is None or other.cpu_ms is None or one.cpu_high_ms is None or other.cpu_low_ms is None:
        return wall
    return wall and one.cpu_high_ms < other.cpu_low_ms and one.cpu_ms < (1 - _SHARE) * other.cpu_ms


def _timed(before: tuple[State, Tree], after: tuple[State, Tree]) -> list[tuple[str, Figures, Figures]]:
    found = []
    for case in after[0].results.cases:
        other = next((c for c in before[0].results.cases if c.name == case.name), None)
        for mode in after[0].results.modes:
            was = other.variant(before[1], "compiled", mode).figures if other else None
            now = case.variant(after[1], "compiled", mode).figures
            if was is not None and now is not None:
                found.append((f"{case.name} ({mode})", was, now))
    return found
