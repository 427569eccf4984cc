"""What figures say of a configuration: how much it takes, whether that is less, whether results are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from patcher.diagnose.bench import State
from patcher.diagnose.better import TIMED, Standing, captures_less, operators, standing
from patcher.diagnose.relations import Bundle
from patcher.harness.compare import BUDGET_OVER, apart
from patcher.harness.measured import Figures, Tree
from patcher.results import FileResult, Reported
from patcher.search.verdict import GRAPHS, UNITS, Fate, total
from patcher.settings import TorchSetting

SHARE = 0.03  # of the time: quartiles of few passes are narrow by chance, and less than this is no gain
_NOTHING = "nothing was compared"
_ROUGH = 0.05  # of what is measured once, or on a busy machine
WEIGHTS = "weights after build(): "  # what begins a difference that is there before anything is called
FIRST_STRATEGIES = (("dynamic-dim", "maybe"),)  # strategies to begin with: marks that keep nothing from being compiled


@dataclass(frozen=True)
class Configuration:
    """What is measured. ``bundles``: fixes; ``settings``: of PyTorch; ``strategies``: how rules fix.

    ``files``: what the fixes make of the source, () for the original.
    """

    bundles: tuple[Bundle, ...] = ()
    settings: tuple[TorchSetting, ...] = ()
    strategies: tuple[tuple[str, str], ...] = ()
    files: tuple[FileResult, ...] = ()

    @property
    def changed(self) -> tuple[FileResult, ...]:
        """The files that differ from the original."""
        return tuple(file for file in self.files if file.changed)

    @property
    def told(self) -> str:
        """In a few words."""
        number = len(self.bundles)
        fixes = [f"{number or 'no'} fix{'' if number == 1 else 'es'}"] if number or self.settings else []
        fixes += [f"{key}={name}" for key, name in self.strategies if (key, name) not in FIRST_STRATEGIES]
        return ", ".join([*fixes, *told_settings(self.settings)]) or "the original"


def told_settings(settings: Sequence[TorchSetting], arguments: str = "...") -> list[str]:
    """Each setting as code says it, the blocks that are compiled one by one as one loop."""
    lists = [f"model.{one.name}" for one in settings if one.kind == "blocks"]
    blocks = f"(*{', *'.join(lists)})" if lists[1:] else "".join(lists)
    loop = [f"for block in {blocks}: block.compile({arguments})"] if lists else []
    return [*loop, *(one.told for one in settings if one.kind != "blocks")]


class Span(NamedTuple):
    """What a goal measures, with its quartiles; the less, the better. ``busy``: CPU ms, where they are known.

    ``counts``: of the goal "graphs", in place of times, with the ``operators`` that graphs hold. ``least``: ms, where
    they are known.
    """

    low: float
    median: float
    high: float
    busy: float | None = None
    counts: Standing | None = None
    operators: float = 0.0
    least: float | None = None


class Reason(NamedTuple):
    """Why something is not kept."""

    text: str
    outcome: Fate = "not better"


_CUT = Reason("not measured to the end: its time was over", "not tried")
NOT_TRIED = Reason("not tried: the budget was used up", "not tried")


@dataclass(frozen=True)
class Best:
    """A verified configuration, and how it was measured."""

    configuration: Configuration
    state: State
    span: Span


def figures_of(state: State, tree: Tree) -> tuple[Figures, ...]:
    """Return the compiled figures of one tree, of all cases that came to their end."""
    return tuple(state.figures(tree).values())


def span_of(state: State, tree: Tree, goal: str, eager: bool = False) -> Span | None:
    """What the goal measures, over all cases; None where one was not measured."""
    results = state.results
    if goal == GRAPHS:
        return _counted_span(state, tree, eager)
    mode = None if eager else results.modes[0]
    if results.backend not in TIMED and not eager:
        return None
    spans = []
    for case in results.cases:
        figures = case.variant(tree, "eager" if eager else "compiled", mode).figures
        spans.append(_of_figures(figures, goal) if figures is not None else None)
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return None
    low, median, high = map(sum, zip(*(span[:3] for span in known), strict=True))
    return Span(low, median, high, total([one.busy for one in known]), least=total([one.least for one in known]))


def _counted_span(state: State, tree: Tree, eager: bool) -> Span | None:
    """What counts say, where no time is measured; of eager code only that it ran."""
    kind: Literal["eager", "compiled"] = "eager" if eager else "compiled"
    mode = None if eager else state.results.modes[0]
    if any(case.variant(tree, kind, mode).figures is None for case in state.results.cases):
        return None
    return Span(0, 0, 0) if eager else Span(0, 0, 0, None, standing(state, tree), operators(state, tree))


def _of_figures(figures: Figures, goal: str) -> Span | None:
    if goal == "startup":
        seconds = figures.cold_seconds
        return None if seconds is None else Span((1 - _ROUGH) * seconds, seconds, (1 + _ROUGH) * seconds)
    if goal == "memory":
        used = figures.memory.bytes / 2**20 if figures.memory else None
        return None if used is None else Span((1 - _ROUGH) * used, used, (1 + _ROUGH) * used)
    warm, calls = figures.warm, max(1, len(figures.settled))
    if warm is None:
        return None
    busy = None if warm.cpu_ms is None else warm.cpu_ms / calls
    return Span(warm.low_ms / calls, warm.median_ms / calls, warm.high_ms / calls, busy, least=warm.min_ms / calls)


def is_less(now: Span | None, was: Span | None, share: float = SHARE) -> bool:
    """Whether it is less beyond noise: quartiles apart, by more than a share; CPU time and the least say the same.

    What could not be measured is more than all that could. Fewer graphs since less is compiled are no gain.
    """
    if now is None or was is None:
        return now is not None
    if now.counts is not None and was.counts is not None:
        return now.counts < was.counts and not captures_less(now.operators, was.operators)
    by_clock = now.high < was.low and now.median < (1 - share) * was.median
    others = ((now.busy, was.busy), (now.least, was.least))
    return by_clock and all(mine is None or theirs is None or mine < theirs for mine, theirs in others)


def is_alike(was: Span | None, now: Span) -> bool:
    """Whether it is not more, beyond noise and beyond a share."""
    return was is not None and not is_less(was, now) and now.median <= (1 + _ROUGH) * was.median


def settles(state: State, tree: Tree) -> bool:
    """Whether all cases stop compiling."""
    return all(map(is_settled, figures_of(state, tree)))


def is_settled(figures: Figures) -> bool:
    """Whether nothing was compiled any more in the last counted pass, and no limit was hit."""
    return not any(call.graphs or call.recompiles for call in figures.settled) and not figures.counts.limit_hits


def is_equal(state: State, tree: Tree) -> bool:
    """Whether compiled code computes what the original computes eagerly: outputs, gradients, state."""
    return not any(apart_from_eager(state, tree))


def is_wrong(state: State, tree: Tree) -> bool:
    """Whether compiled code was compared, and computes something else than the original does eagerly."""
    return any(text != _NOTHING for text in apart_from_eager(state, tree))


def apart_from_eager(state: State, tree: Tree) -> Iterator[str]:
    """Yield how compiled results differ from those of the original in eager mode."""
    for case in state.results.cases:
        one = case.comparison(tree, "compiled", state.results.modes[0])
        yield from (_NOTHING,) if one is None else apart(one, case.tolerance)


def unrepeated(state: State) -> str:
    """Return what is different in a second run of the program, up to its first recorded call; "" for nothing."""
    found = (one for case in state.results.cases for one in case.comparisons if one.tree == "original")
    return next((text for one in found for text in one.differences if text.startswith(WEIGHTS)), "")


def assumed(fixed: Reported) -> str:
    """Return what a fix assumes; "" for a proven one."""
    return "" if fixed.applicability == "safe" else fixed.assumption


def cold_seconds(figures: Sequence[Figures]) -> float | None:
    """The seconds of the first passes; None where none was measured."""
    known = [one.cold_seconds for one in figures if one.cold_seconds is not None]
    return round(sum(known), 2) if known else None


def is_verified(state: State) -> bool:
    """Whether compiled results equal those of the original in eager mode. Counts do not matter here, times decide."""
    statuses = {verdict.status for verdict in state.judgement.verdicts}
    return bool(statuses & {"equivalent", "worse"}) and statuses <= {"equivalent", "unproven", "worse"}


def differs(state: State) -> bool:
    """Whether results are others than those of the original."""
    return any(verdict.status == "different" for verdict in state.judgement.verdicts)


def why_not(state: State) -> Reason:
    """Why a state does not count as verified."""
    if any(variant.message == BUDGET_OVER for case in state.results.cases for variant in case.variants):
        return _CUT
    for found in state.judgement.verdicts:
        if found.status not in ("equivalent", "unproven"):
            outcome: Fate = "different" if found.status == "different" else "failed"
            return Reason("; ".join(found.reasons[:2]) or found.status, outcome)
    return Reason("no recorded call runs what was changed", "failed")


def told(span: Span | None, goal: str) -> str:
    """In a few words."""
    if span is not None and span.counts is not None:
        return span.counts.told
    return "did not run" if span is None else f"{span.median:.3g} {UNITS[goal]}"
