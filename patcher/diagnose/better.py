"""Whether one state of the tree is better than another by what was counted."""

from __future__ import annotations

import math
from typing import NamedTuple

from patcher.diagnose.bench import State, totals
from patcher.diagnose.diagnosis import Totals
from patcher.harness.measured import Tree
from patcher.words import COUNTED

_WORDS = {name: f"{word}s" for name, word in COUNTED.items()} | {"launches": "launches"}
_GRAVEST = ("limit_hits", "dropped_frames", "breaks", "recompiles", "launches", "cudagraph_skips")
TIMED = ("inductor",)  # the backends whose times say something
_FEW = 10  # operators
_MANY = 300  # operators: so many are compiled where a loop is unrolled
_FEWER = 8, 50  # times, where it is compiled again for another number of turns, and where it is not
_SAME = 0.75  # of the operators in a pass: else less is compiled
_NEAR = 2  # times the graphs that start


def change(before: Totals, after: Totals) -> str:
    """Return the counts that differ between two states, as ``breaks 25 -> 0``, what got better first."""
    pairs = [(_WORDS[name], getattr(before, name), getattr(after, name)) for name in _GRAVEST]
    told = [f"{word} {was} -> {now}" for word, was, now in sorted(pairs, key=lambda p: p[2] > p[1]) if now != was]
    if captures_less(after.operators, before.operators):
        told.append(f"captured operators {before.operators} -> {after.operators}: less is compiled")
    return ", ".join(told) or "no count changes"


def captures_less(now: float, was: float) -> bool:
    """Whether far fewer operators are captured: few graphs are no gain when most of the code is in none."""
    return was - now >= _FEW and 2 * now < was


class Standing(NamedTuple):
    """How far a measured tree is from one graph for each call; less is better, the first number that differs decides.

    ``failing``: what does not run compiled; ``empty``: calls in which no graph starts; ``lost``: frames that are not
    compiled at all, and limits that were hit: what runs eagerly starts no graphs; ``graphs``: that start in a settled
    pass.
    """

    failing: int
    empty: int
    lost: int
    graphs: int
    breaks: int
    recompiles: int

    def is_near(self, least: Standing) -> bool:
        """Whether it may be as fast as the least: as much runs compiled, in not many more graphs."""
        return self[:3] <= least[:3] and self.graphs <= _NEAR * least.graphs

    @property
    def told(self) -> str:
        """In a few words."""
        lost = f", {self.lost} frames not compiled" if self.lost else ""
        return f"{self.graphs} graphs in a pass{lost}, {self.breaks} breaks, {self.recompiles} recompiles"


def standing(state: State, tree: Tree) -> Standing:
    """Of a measured tree, over all cases and modes."""
    figures = state.figures(tree).values()
    empty = sum(not call.launches for one in figures for call in one.settled)
    counted = totals(list(figures))
    failing = len(state.results.cases) * len(state.results.modes) - len(figures)
    lost = counted.dropped_frames + counted.limit_hits
    return Standing(failing, empty, lost, counted.launches, counted.breaks, counted.recompiles)


def operators(state: State, tree: Tree) -> float:
    """How many operators the graphs of a settled pass hold; infinitely many where each call is one graph."""
    if is_whole(state, tree):  # what computes sizes of numbers that are known has no operators for it
        return math.inf
    return totals(list(state.figures(tree).values())).operators


def operators_compiled(state: State, tree: Tree) -> float:
    """How many operators there are in all graphs that were compiled, each of them once."""
    origins = [origin for one in state.figures(tree).values() for origin in one.origins if origin.launches]
    return sum(origin.graphs * origin.operators / origin.launches for origin in origins)


def is_lost(state: State, tree: Tree) -> bool:
    """Whether something falls back to eager, or so many operators are compiled as where a loop is unrolled."""
    return any(standing(state, tree)[:3]) or operators_compiled(state, tree) >= _MANY


def unrolls_less(now: State, was: State, tree: Tree) -> bool:
    """Whether far fewer operators are compiled since a loop is not unrolled, although more graphs start."""
    few, many = operators_compiled(now, "patched"), operators_compiled(was, tree)
    after, before = standing(now, "patched"), standing(was, tree)
    run, ran = (totals(list(some.values())).operators for some in (now.figures("patched"), was.figures(tree)))
    least = _FEWER[0] if before.recompiles else _FEWER[1]
    fewer = many >= _MANY and least * few <= many and run >= _SAME * ran
    return fewer and after[:3] <= before[:3] and after.recompiles <= before.recompiles


def is_whole(state: State, tree: Tree) -> bool:
    """Whether there is no more to gain: each call of all cases is one graph."""
    calls = sum(len(one.settled) for one in state.figures(tree).values())
    now = standing(state, tree)
    return calls > 0 and not any((now.failing, now.empty, now.lost, now.breaks)) and now.graphs <= calls
