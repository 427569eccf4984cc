"""Whether one state of the tree is better than another: counts first, and time only beyond noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from patcher.diagnose.bench import State, totals
from patcher.diagnose.diagnosis import Totals
from patcher.harness.measured import Tree, Warm

_COUNTS = (
    ("limit_hits", "recompile-limit hits"),
    ("dropped_frames", "dropped frames"),
    ("breaks", "breaks"),
    ("recompiles", "recompiles"),
    ("launches", "launches"),
    ("cudagraph_skips", "CUDA-graph skips"),
)
TIMED = ("inductor",)  # the backends whose times say something
_FEW = 10  # operators
_NEAR = 2  # times the graphs that start
_CLOSER = 0.5  # times the distance that there was: less says that numbers have come closer
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
        """Whether the later is to be preferred: something is better, and worse only what time makes up for."""
        return bool(self.better or self.faster) and not self.slower and (not self.worse or bool(self.faster))

    @property
    def by_time(self) -> bool:
        """Whether it would be decided otherwise without the clock."""
        counted = replace(self, faster=(), slower=())
        return counted.gain != self.gain

    @property
    def told(self) -> str:
        """All of it in one line."""
        return ", ".join((*self.better, *self.worse, *self.faster, *self.slower)) or "no count changes"


def change(before: Totals, after: Totals, whole: bool = False) -> Change:
    """By counts alone. ``whole``: with the later each call is one graph, so that nothing runs eagerly."""
    lost = before.operators - after.operators
    half = lost >= _FEW and 2 * after.operators < before.operators
    less = half and not whole  # fewer breaks since less is compiled are no gain
    fewer = [f"captured operators {before.operators} -> {after.operators}: less is compiled"] if less else []
    pairs = [(name, word, getattr(before, name), getattr(after, name)) for name, word in _COUNTS]
    excused = ("launches",) if after.limit_hits < before.limit_hits else ()  # what ran eagerly started no graphs
    return Change(
        tuple(f"{word} {was} -> {now}" for _, word, was, now in pairs if now < was),
        (*(f"{word} {was} -> {now}" for name, word, was, now in pairs if now > was and name not in excused), *fewer),
    )


def difference(before: tuple[State, Tree], after: tuple[State, Tree]) -> Change:
    """From one measured tree to another, over the cases and modes that came to their end in both.

    Of backends that are not in ``TIMED`` the time that it takes says nothing.
    """
    old, new = before[0].figures(before[1]), after[0].figures(after[1])
    both = [key for key in old if key in new]
    counted = change(totals([old[key] for key in both]), totals([new[key] for key in both]), is_whole(*after))
    faster, slower = [], []
    for key in both if after[0].results.backend in TIMED else ():
        was, now = old[key].warm, new[key].warm
        if was is None or now is None:
            continue
        told = f"{_named(key)} {was.median_ms:.3g} -> {now.median_ms:.3g} ms"
        if _quicker(now, was):
            faster.append(told)
        elif _quicker(was, now):
            slower.append(told)
    if faster and slower:  # one case against another: all of them together decide
        was_ms, now_ms = (sum(f.warm.median_ms for f in (side[k] for k in both) if f.warm) for side in (old, new))
        faster = faster if now_ms < (1 - _SHARE) * was_ms else []
        slower = slower if now_ms > (1 + _SHARE) * was_ms else []
    runs = [f"{_named(key)} runs compiled" for key in new if key not in old]
    fails = [f"{_named(key)} does not run compiled any more" for key in old if key not in new]
    return Change((*runs, *counted.better), (*fails, *counted.worse), tuple(faster), tuple(slower))


def eager_difference(before: tuple[State, Tree], after: tuple[State, Tree]) -> Change:
    """The same, with the time that eager code takes, and how far compiled results are from eager ones.

    What a rewrite of operators gains: compiled code has fused them by itself.
    """
    compiled = difference(before, after)
    faster, slower, closer, further = list(compiled.faster), list(compiled.slower), list(compiled.better), []
    pairs = zip(_eager(*before), _eager(*after), strict=True)
    for case, (was, now) in zip(before[0].results.cases, pairs, strict=True):
        if was is not None and now is not None:
            told = f"{case.name} (eager) {was.median_ms:.3g} -> {now.median_ms:.3g} ms"
            faster += [told] if _quicker(now, was) else []
            slower += [told] if _quicker(was, now) else []
    for key, was_apart in _apart(*before).items():
        now_apart = _apart(*after).get(key)
        if was_apart is None or now_apart is None:
            continue
        told = f"{_named(key)} from eager to compiled {was_apart:.1e} -> {now_apart:.1e}"
        closer += [told] if now_apart < _CLOSER * was_apart else []
        further += [told] if was_apart < _CLOSER * now_apart else []
    return Change(tuple(closer), (*compiled.worse, *further), tuple(faster), tuple(slower))


def _eager(state: State, tree: Tree) -> list[Warm | None]:
    """The warm times of eager code, case by case."""
    figures = (case.variant(tree, "eager").figures for case in state.results.cases)
    return [one.warm if one is not None else None for one in figures]


def _apart(state: State, tree: Tree) -> dict[tuple[str, str], float | None]:
    """By case and mode the mean distance of compiled outputs to those of the same tree in eager mode."""
    return {
        (case.name, str(one.mode)): one.outputs.mae if tree == "original" else one.own_eager
        for case in state.results.cases
        for one in case.comparisons
        if (one.tree, one.kind) == (tree, "compiled")
    }


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


def is_whole(state: State, tree: Tree) -> bool:
    """Whether there is no more to gain: each call of all cases is one graph."""
    calls = sum(len(one.settled) for one in state.figures(tree).values())
    now = standing(state, tree)
    return calls > 0 and not any((now.failing, now.empty, now.lost, now.breaks)) and now.graphs <= calls


def compiles_less(one: State, tree: Tree, other: State, others: Tree) -> bool:
    """Whether far fewer operators are captured in ``one``: few graphs are no gain when most of the code is in none."""
    if is_whole(one, tree):  # what computes sizes of numbers that are known has no operators for it
        return False
    fewer, more = (totals(list(s.figures(t).values())).operators for s, t in ((one, tree), (other, others)))
    return more - fewer >= _FEW and 2 * fewer < more


def _named(key: tuple[str, str]) -> str:
    return "{} ({})".format(*key)


def _quicker(one: Warm, other: Warm) -> bool:
    """Whether one took less time than the other, beyond noise: on the wall clock and, where it is known, in CPU time.

    The two were measured one after the other, and what else the machine did meanwhile shows on the wall clock alone.
    """
    wall = one.high_ms < other.low_ms and one.median_ms < (1 - _SHARE) * other.median_ms
    if one.cpu_ms is None or other.cpu_ms is None or one.cpu_high_ms is None or other.cpu_low_ms is None:
        return wall
    return wall and one.cpu_high_ms < other.cpu_low_ms and one.cpu_ms < (1 - _SHARE) * other.cpu_ms
