"""What a search has come to, as a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from patcher.diagnose.bench import State
from patcher.diagnose.better import operators_compiled, unrolls_less
from patcher.harness.compare import chosen
from patcher.harness.measured import Figures, Tree
from patcher.search.judged import (
    WEIGHTS,
    Best,
    Configuration,
    Span,
    apart_from_eager,
    assumed,
    cold_seconds,
    figures_of,
    is_equal,
    is_less,
    is_verified,
    is_wrong,
    span_of,
    unrepeated,
)
from patcher.search.judged import told as shown
from patcher.search.optimizing import Optimizer
from patcher.search.remedies import OF_MACHINE, named
from patcher.search.verdict import GRAPHS, Dropped, Grade, Kept, Pair, Verdict, relative, total

_NOISY = 2  # times: the upper quartile of the times to the lower one


def verdict(search: Optimizer, call: str = "", compiles: bool = True) -> Verdict:
    """What the search has come to. ``compiles``: whether the program compiles by itself."""
    base, seconds = search.base, round(time.monotonic() - search.began, 1)
    if base is None or unrepeated(base):
        return Verdict("failed", search.goal, seconds=seconds, said=_failure(base or search.counted))
    end = _End(search, base, search.best, call, compiles or "call" not in search.parts)
    told = end.timed(seconds)
    return told if told.said else end.ended(end.measured(told))


@dataclass(frozen=True)
class _End:
    """The end of a search. ``base``: the original. ``compiles``: whether it stays compiled when nothing is kept."""

    search: Optimizer
    base: State
    best: Best | None
    call: str
    compiles: bool

    @property
    def counted(self) -> bool:
        """Whether counts decide."""
        return self.search.goal == GRAPHS

    @property
    def now(self) -> tuple[State, Tree]:
        """What stays, and which of its trees that is."""
        return (self.best.state, "patched") if self.best else (self.base, "original")

    @property
    def figures(self) -> tuple[tuple[Figures, ...], tuple[Figures, ...]]:
        """Of the original compiled, and of what stays."""
        before, after = figures_of(self.base, "original"), figures_of(*self.now)
        return before, after or before

    def was(self, goal: str, eager: bool = False) -> Span | None:
        """Return what the original takes."""
        return span_of(self.base, "original", goal, eager)

    def timed(self, seconds: float) -> Verdict:
        """Return the times, and of a case without them why there are none."""
        search, place = self.search, self.base.results.environment
        eager, before = (self.was(GRAPHS if self.counted else "latency", eager) for eager in (True, False))
        times = (None, None) if self.counted else (_median(eager), _median(before))
        cut = before is None and _is_cut(self.base)
        told = Verdict("failed", search.goal, place.device, place.torch, seconds, search.seconds_to_first, *times, cut)
        told = replace(told, dropped=tuple(one for one in search.dropped if one.what not in _named(self.best)))
        if eager is not None and (before is not None or self.best is not None):
            return told
        raises = eager is not None and _raises(self.base)
        return replace(told, word="do-not-compile" if raises else "failed", said=_failure(self.base))

    def measured(self, told: Verdict) -> Verdict:
        """Return all that was measured of the original and of what stays."""
        search, best, (state, tree), (unfixed, fixed) = self.search, self.best, self.now, self.figures
        cold, again = search.cold.get(best.configuration if best else Configuration()), cold_seconds(fixed)

        def pair(count: Callable[[Figures], int]) -> Pair:
            return Pair(*(total([count(one) for one in side]) for side in (unfixed, fixed)))

        if search.goal in ("startup", "memory"):
            spans = [self.was(search.goal), *([best.span] if best else [])]
            told = replace(told, judged=f"{search.goal} {' -> '.join(shown(one, search.goal) for one in spans)} | ")
        timed = (self.was("latency", True), self.was("latency"), span_of(state, tree, "latency"))
        return replace(
            told,
            noise="" if self.counted else _noise([one for one in timed if one is not None]),
            after_ms=None if self.counted else _median(span_of(state, tree, "latency")),
            cold_s=cold,
            before_cold_s=search.cold.get(Configuration()),
            warm_cold_s=None if again == cold else again,
            equivalent=self._is_verified and not is_wrong(state, tree),
            max_difference=_difference(state, tree),
            replayed=search.replayed if best else None,
            by_call=_chosen(state, tree),
            breaks=pair(lambda one: one.counts.breaks),
            recompiles=pair(lambda one: one.counts.recompiles),
            graphs=pair(lambda one: one.launches),
            ops_in_graphs=pair(lambda one: one.operators),
        )

    @property
    def _is_verified(self) -> bool:
        """Whether results equal eager ones, or else those that the program had compiled."""
        if self.best is None:
            return is_equal(self.base, "original")
        return is_verified(self.best.state) and (self.compiles or is_equal(self.best.state, "patched"))

    def ended(self, told: Verdict) -> Verdict:
        """Return what follows from the figures."""
        best, (_, fixed) = self.best, self.figures
        if not self._is_verified:
            return self._different(told)
        slower = self._is_slower
        if slower and (self.search.against_eager or best is None):
            kept = best.configuration if best else Configuration()
            names = [*(bundle.label for bundle in kept.bundles), *(setting.told for setting in kept.settings)]
            dropped = (*told.dropped, *(Dropped(name, "eager is as fast") for name in names))
            return replace(told, word="do-not-compile", dropped=dropped, said=named(fixed))
        if best is not None:
            return self._optimized(told, best, slower)
        if self.counted and not told.graphs.before:
            return replace(told, word="do-not-compile", said=named(fixed))
        return replace(told, word="already-best" if self.compiles or self.counted else "optimized", call=self.call)

    @property
    def _is_slower(self) -> bool:
        """Whether what stays is no faster than eager code, where that is known and something else could be done."""
        judged = "latency" if self.search.goal == "startup" else self.search.goal  # eager code has nothing to compile
        least, alone = span_of(*self.now, judged), self.was(judged, eager=True)
        cut = self.was(GRAPHS if self.counted else "latency") is None
        runs_now = self.compiles and self.best is not None and cut and not is_less(alone, least)
        return not self.counted and not runs_now and not is_less(least, alone)

    def _different(self, told: Verdict) -> Verdict:
        (state, tree), alone = self.now, self.best is None
        if alone and any(case.compare_error for case in state.results.cases):
            return replace(told, said=_failure(state))
        said = "compiled results differ from eager" + ", also without fixes" * (alone and self.compiles)
        said = ": ".join([said, *islice(apart_from_eager(state, tree), 1)])
        if cut := any(case.cut for case in state.results.cases):
            said += "; the budget was over before rounding was ruled out; --budget gives more"
        return replace(told, word="failed" if self.compiles or cut else "do-not-compile", said=said)

    def _optimized(self, told: Verdict, best: Best, slower: bool) -> Verdict:
        one, fixes = best.configuration, tuple(_kept(best))
        if len(fixes) == 1 and not one.settings and told.before_ms is not None and told.after_ms is not None:
            fixes = (replace(fixes[0], gain_ms=round(told.before_ms - told.after_ms, 3)),)
        return replace(
            told,
            word="optimized",
            call=self.call,
            settings={setting.name: setting.value for setting in one.settings},
            fixes=fixes,
            files=tuple(self.search.bench.places.shown(file.path) for file in one.changed),
            said=f"{told.against_eager} on this device ({told.device})" if slower else _unrolled(best.state, self.base),
        )


def _unrolled(now: State, was: State) -> str:
    """What is said where more graphs start, for a loop is not unrolled any more or what was compiled was wrong."""
    if is_wrong(was, "original"):
        now_too = next(apart_from_eager(now, "patched"), "")
        return "compiled as it was, results differ from eager" + f", and do now: {now_too}" * bool(now_too)
    before, after = operators_compiled(was, "original"), operators_compiled(now, "patched")
    few = unrolls_less(now, was, "original")
    return f"a loop is not unrolled any more: operators compiled {before:.0f} -> {after:.0f}" if few else ""


def _chosen(state: State, tree: Tree) -> str:
    """What is told of results that rounding has chosen otherwise; "" where there are none."""
    found = (case.comparison(tree, "compiled", state.results.modes[0]) for case in state.results.cases)
    return "; ".join(chosen(one) for one in found if one is not None and one.chosen)


def _named(best: Best | None) -> frozenset[str]:
    """Return the names of what is kept, as ``dropped`` would name them."""
    one = best.configuration if best else Configuration()
    return frozenset((one.told, *(bundle.label for bundle in one.bundles), *(each.told for each in one.settings)))


def _kept(best: Best) -> Iterator[Kept]:
    """The fixes, each place of them once."""
    for file in best.configuration.changed:
        for fixed in file.patch.fixed if file.patch else ():
            safe = fixed.applicability == "safe"
            grade: Grade = "proven" if safe else "measured" if fixed.measured else "assumed"
            yield Kept(fixed.code, relative(file.path), fixed.line, grade, assumed(fixed))


def _difference(state: State, tree: Tree) -> float | None:
    """The largest difference of compiled outputs to those of the original in eager mode."""
    found = (case.comparison(tree, "compiled", state.results.modes[0]) for case in state.results.cases)
    known = [largest for c in found if c and (largest := 0.0 if c.outputs.bitwise else c.outputs.max) is not None]
    return max(known) if known else None


def _failure(state: State | None) -> str:
    """What keeps a case from being measured."""
    if state is not None and (what := unrepeated(state).removeprefix(WEIGHTS)):
        return f"your program does not repeat itself: in a second run {what}; seed its random numbers"
    for case in state.results.cases if state else ():
        for variant in case.variants:
            if variant.tree == "original" and variant.status == "timeout":
                return f"the budget was over before {variant.name} was measured; --budget gives more"
            if variant.tree == "original" and variant.status not in ("ok", "skipped"):
                return f"{variant.name}: {variant.message or variant.status}"
        if case.compare_error:
            return case.compare_error
    return "nothing could be measured"


def _is_cut(state: State) -> bool:
    """Whether the original could not be compiled in the time that there was."""
    found = [case.variant("original", "compiled", state.results.modes[0]) for case in state.results.cases]
    return any(variant.status == "timeout" for variant in found)


def _raises(state: State) -> bool:
    """Whether the original fails when it is compiled, for no fault of the machine."""
    found = [case.variant("original", "compiled", state.results.modes[0]) for case in state.results.cases]
    failed = [variant for variant in found if variant.status in ("error", "compile-error")]
    return bool(failed) and not any(OF_MACHINE.search(variant.message) for variant in failed)


def _noise(spans: list[Span]) -> str:
    """What is said where times of one call are so far apart that the machine was busy with something else."""
    low, _, high, *_ = max(spans, key=lambda one: one.high / one.low if one.low else 0.0, default=Span(1, 1, 1))
    apart = f"one call took {low:.3g} to {high:.3g} ms (quartiles): the machine is busy; measure again when it is idle"
    return apart if high > _NOISY * low else ""


def _median(span: Span | None) -> float | None:
    return None if span is None else round(span.median, 3)
