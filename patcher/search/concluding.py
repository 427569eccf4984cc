"""What a search has come to, as a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from patcher.diagnose.bench import State
from patcher.harness.compare import chosen
from patcher.harness.measured import Tree
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
    span_of,
    unrepeated,
)
from patcher.search.judged import told as shown
from patcher.search.optimizing import Optimizer
from patcher.search.remedies import OF_MACHINE, named
from patcher.search.verdict import GRAPHS, Dropped, Grade, Kept, Pair, Verdict, counts, relative


def verdict(search: Optimizer, call: str = "", compiles: bool = True) -> Verdict:
    """What the search has come to. ``compiles``: whether the program compiles by itself."""
    base, best = search.base, search.best
    seconds = round(time.monotonic() - search.began, 1)
    if base is None or unrepeated(base):
        return Verdict("failed", search.goal, seconds=seconds, said=_failure(base or search.counted))
    place = base.results.environment
    counted, compiles = search.goal == GRAPHS, compiles or "call" not in search.parts
    unit = GRAPHS if counted else "latency"
    eager, before = (span_of(base, "original", unit, eager) for eager in (True, False))
    after = span_of(best.state, "patched", unit) if best else before
    times, cut = (None, None) if counted else (_median(eager), _median(before)), before is None and _is_cut(base)
    told = Verdict("failed", search.goal, place.device, place.torch, seconds, search.seconds_to_first, *times, cut)
    told = replace(told, dropped=tuple(one for one in search.dropped if one.what not in _named(best)))
    if eager is None or (before is None and best is None):
        raises = eager is not None and _raises(base)
        return replace(told, word="do-not-compile" if raises else "failed", said=_failure(base))
    unfixed, fixed = figures_of(base, "original"), figures_of(best.state, "patched") if best else ()
    cold, again = search.cold.get(best.configuration if best else Configuration()), cold_seconds(fixed or unfixed)
    told = replace(
        told,
        after_ms=None if counted else _median(after),
        cold_s=cold,
        before_cold_s=search.cold.get(Configuration()),
        warm_cold_s=None if again == cold else again,
        equivalent=is_verified(best.state) and (compiles or is_equal(best.state, "patched"))
        if best
        else is_equal(base, "original"),
        max_difference=_difference(best.state if best else base, "patched" if best else "original"),
        replayed=search.replayed if best else None,
        by_call=_chosen(best.state if best else base, "patched" if best else "original"),
        breaks=Pair(*(counts([f.counts.breaks for f in side]) for side in (unfixed, fixed or unfixed))),
        recompiles=Pair(*(counts([f.counts.recompiles for f in side]) for side in (unfixed, fixed or unfixed))),
        graphs=Pair(*(counts([f.launches for f in side]) for side in (unfixed, fixed or unfixed))),
        ops_in_graphs=Pair(*(counts([f.operators for f in side]) for side in (unfixed, fixed or unfixed))),
    )
    if search.goal in ("startup", "memory"):
        spans = [span_of(base, "original", search.goal), *([best.span] if best else [])]
        told = replace(told, judged=f"{search.goal} {' -> '.join(shown(one, search.goal) for one in spans)} | ")
    judged = "latency" if search.goal == "startup" else search.goal  # eager code has nothing to compile
    least = span_of(best.state, "patched", judged) if best else span_of(base, "original", judged)
    alone = span_of(base, "original", judged, eager=True)
    if not told.equivalent and best is None and any(case.compare_error for case in base.results.cases):
        return replace(told, said=_failure(base))
    if not told.equivalent:
        state = best.state if best else base
        said = "compiled results differ from eager" + ", also without fixes" * (best is None and compiles)
        said = ": ".join([said, *islice(apart_from_eager(state, "patched" if best else "original"), 1)])
        if cut := any(case.cut for case in state.results.cases):
            said += "; the budget was over before rounding was ruled out; --budget gives more"
        return replace(told, word="failed" if compiles or cut else "do-not-compile", said=said)
    runs_now = compiles and best is not None and before is None and not is_less(alone, least)
    slower = not counted and not runs_now and not is_less(least, alone)
    if slower and (search.against_eager or best is None):
        kept = best.configuration if best else Configuration()
        names = [*(bundle.label for bundle in kept.bundles), *(setting.told for setting in kept.settings)]
        dropped = (*told.dropped, *(Dropped(name, "eager is as fast") for name in names))
        return replace(told, word="do-not-compile", dropped=dropped, said=named(fixed or unfixed))
    if best is None and counted and not told.graphs.before:
        return replace(told, word="do-not-compile", said=named(unfixed))
    if best is None:
        return replace(told, word="already-best" if compiles or counted else "optimized", call=call)
    one, fixes = best.configuration, tuple(_kept(best))
    if len(fixes) == 1 and not one.settings and told.before_ms is not None and told.after_ms is not None:
        fixes = (replace(fixes[0], gain_ms=round(told.before_ms - told.after_ms, 3)),)
    given = {setting.name: setting.value for setting in one.settings}
    return replace(
        told,
        word="optimized",
        call=call,
        settings=given,
        fixes=fixes,
        files=tuple(search.bench.places.shown(file.path) for file in one.changed),
        said=f"{told.against_eager} on this device ({place.device})" if slower else "",
    )


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
    found = [case.comparison(tree, "compiled", state.results.modes[0]) for case in state.results.cases]
    largest = [0.0 if c.outputs.bitwise else c.outputs.max for c in found if c is not None]
    known = [value for value in largest if value is not None]
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


def _median(span: Span | None) -> float | None:
    return None if span is None else round(span.median, 3)
