"""From what was measured to a verdict: is the patched code equivalent? ``docs/harness.md`` has the rules."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from patcher.harness.measured import CaseResult, Comparison, Distance, Figures, Kind, Measurement, Results, Tree, Warm

VerdictStatus = Literal["equivalent", "different", "worse", "failed", "unproven", "invalid"]

TREES: tuple[Tree, Tree] = ("original", "patched")
ENDED: dict[str, str] = {
    "case-error": "does not run",
    "error": "crashed",
    "compile-error": "does not compile",
    "timeout": "hung (time limit)",
    "out-of-memory": "ran out of memory",
    "exited": "ended without a result",
    "skipped": "was not run",
}

BUDGET_OVER = "the budget was used up"  # what run.py says of a variant that hit no time limit of its own
# Compiled code is compared with what compiling does to the original: it may be off by this much more.
_MAE_EXCUSE, _RELATIVE_EXCUSE = 2, 4
_FLOAT32 = 2.0**-23
_ROUNDINGS = 4  # how many of a half type's a long computation may come to
_LISTED = 5


@dataclass(frozen=True)
class Verdict:
    """Of one case in one mode. ``reasons``: why it is not equivalent; ``notes``: what else one should know."""

    case: str
    mode: str
    status: VerdictStatus
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judgement:
    """All verdicts, by case, then mode. ``unexercised``: patched files and changed places that no case has run."""

    verdicts: tuple[Verdict, ...]
    unexercised: tuple[str, ...] = ()

    @property
    def equivalent(self) -> bool:
        """Whether all are; without a case nothing is proven."""
        return bool(self.verdicts) and all(verdict.status == "equivalent" for verdict in self.verdicts)

    @property
    def invalid(self) -> bool:
        """Whether a case itself is wrong, so that it says nothing about the patch."""
        return any(verdict.status == "invalid" for verdict in self.verdicts)


class _Said(NamedTuple):
    status: VerdictStatus | Literal["note"]
    text: str


class _Trial(NamedTuple):
    """One case in one mode, and what is asked of it. ``exact``: eager outputs must have the same bits."""

    case: CaseResult
    mode: str
    tolerance: float
    exact: bool
    files: tuple[str, ...]
    settings: tuple[str, ...] = ()

    @property
    def compiled(self) -> tuple[Figures | None, Figures | None]:
        """Of original and patched compiled, when they came to their end."""
        before, after = (self.case.variant(tree, "compiled", self.mode) for tree in TREES)
        return before.figures, after.figures

    @property
    def eager(self) -> tuple[Figures | None, Figures | None]:
        """Of original and patched eager, when they came to their end."""
        before, after = (self.case.variant(tree, "eager") for tree in TREES)
        return before.figures, after.figures


def judge(results: Results, tolerance: float | None = None) -> Judgement:
    """A verdict for each case and mode; ``tolerance`` (largest mean absolute error) is in place of the cases' own."""
    if tolerance is not None and not tolerance >= 0:  # also not NaN, which nothing exceeds
        raise ValueError(f"a tolerance is a number from 0, not {tolerance}")
    files = tuple(file.shown for file in results.overlay)
    verdicts = []
    for case in results.cases:
        asked = case.tolerance if tolerance is None else tolerance
        exact = results.promise == "bitwise" and not _noisy(case)
        settings = tuple(map(str, results.settings))
        verdicts += [_verdict(_Trial(case, mode, asked, exact, files, settings)) for mode in results.modes]
    return Judgement(tuple(verdicts), _unexercised(results, files))


def speedup(before: Warm, after: Warm) -> float:
    """How many times faster the later is, by medians; NaN when one of them is 0."""
    return before.median_ms / after.median_ms if before.median_ms and after.median_ms else math.nan


def within_noise(before: Warm, after: Warm) -> bool:
    """Whether the quartile ranges overlap, so that the difference of the medians says nothing."""
    return before.low_ms <= after.high_ms and after.low_ms <= before.high_ms


def as_much(before: Warm, after: Warm, eager: Warm, patched: Warm) -> bool:
    """Whether the eager times of the two trees differ in the same direction, and as much as the compiled ones do.

    Then what was seen may be the machine's doing, or at least is not what compiling has won.
    """
    won, anyway = speedup(before, after), speedup(eager, patched)
    if math.isnan(anyway) or within_noise(eager, patched):
        return False
    return anyway >= won > 1 or anyway <= won < 1


def ended(measurement: Measurement) -> str:
    """How a variant that is not ok has ended, for people: ``patched eager: crashed: ValueError: ...``."""
    cut = measurement.message == BUDGET_OVER
    told = f"{measurement.name}: {'not measured' if cut else ENDED.get(measurement.status, measurement.status)}"
    if measurement.message:
        return f"{told}: {measurement.message}"
    return f"{told} after {measurement.seconds:.0f} s" if measurement.status == "timeout" else told


def apart(found: Comparison, tolerance: float) -> tuple[str, ...]:
    """Why what was computed is not what original eager computes, within the limits of the harness; () when it is.

    There is no excuse here: what compiling alone does to the original is what is asked about. Outputs in half
    precision may differ by what their type rounds off, which is more than a tolerance that is meant for float32.
    """
    said = [*_differences("it", found.differences)]
    half = _epsilon(found) > _FLOAT32 and (found.outputs.relative or 0.0) <= _ROUNDINGS * _epsilon(found)
    said += _beyond("outputs", found.outputs, None if half or found.rounding else tolerance, _output_limit(found))
    for what, distance in _trained(found):
        said += _beyond(what, distance, None, _trained_limit(found))
    said += _unexplained("it", found)
    return tuple(item.text for item in said if item.status == "different")


_ORDER: tuple[VerdictStatus, ...] = ("invalid", "failed", "different", "unproven", "worse")


def _verdict(trial: _Trial) -> Verdict:
    said = list(_invalid(trial))
    if said and trial.case.compare_error:
        said += [_Said("note", item.text) for item in _failed(trial)]
    elif not said:
        said += [*_failed(trial), *_eager(trial), *_compiled(trial), *_replayed(trial), *_unproven(trial)]
        if not {item.status for item in said} & {"invalid", "failed", "different"}:
            said += _worse(trial)
        if _noisy(trial.case) and any(item.status == "different" for item in said):
            said.append(_Said("different", "or it is noise, for the original differs from itself: seed what is drawn"))
        said += _slower(trial)
    reasons = {status: [item.text for item in said if item.status == status] for status in _ORDER}
    status: VerdictStatus = next((status for status in _ORDER if reasons[status]), "equivalent")
    all_reasons = tuple(reason for status in _ORDER for reason in reasons[status])
    notes = tuple(item.text for item in said if item.status == "note")
    return Verdict(trial.case.name, trial.mode, status, all_reasons, notes)


def _noisy(case: CaseResult) -> bool:
    figures = case.variant("original", "eager").figures
    return figures is not None and figures.repeatable is False


def _invalid(trial: _Trial) -> Iterator[_Said]:
    case = trial.case
    eager, compiled = case.variant("original", "eager"), case.variant("original", "compiled", trial.mode)
    if compiled.status == "case-error":  # its own way to compile, say
        yield _Said("invalid", f"the case is wrong, not the patch: {ended(compiled)}")
    if eager.figures is None:
        yield _Said("invalid", f"the case is wrong, not the patch: {ended(eager)}")
    elif case.compare_error:
        told = f"its outputs cannot be compared: {case.compare_error}"
        yield _Said("invalid", f"the case is wrong, not the patch: {told}")


def _failed(trial: _Trial) -> Iterator[_Said]:
    pairs: tuple[tuple[Kind, str | None], ...] = (("eager", None), ("compiled", trial.mode))
    for kind, mode in pairs:
        before, after = (trial.case.variant(tree, kind, mode) for tree in TREES)
        if kind == "compiled" and after.status == "skipped" and trial.eager[1] is None:
            continue  # what crashes in eager mode is not compiled
        if after.figures is None and before.figures is None:
            ran = kind == "compiled" and bool(trial.eager[1]) and "skipped" not in (before.status, after.status)
            why = "no compiled code ran, so nothing is proven" if ran else "neither tree runs here"
            yield _Said("invalid" if ran else "note", f"{why}: {ended(before)}; {ended(after)}")
        elif after.figures is None:
            yield _Said("failed", ended(after))
        elif before.figures is None and before.status == "skipped":
            yield _Said("note", ended(before))
        elif before.figures is None:
            yield _Said("note", f"compiles now ({ended(before)})")


def _unproven(trial: _Trial) -> Iterator[_Said]:
    if not trial.files:
        if not trial.settings:
            yield _Said("unproven", "no file is patched")
        return
    loaded: set[str] = set()
    for measurement in (trial.case.variant("patched", "eager"), trial.case.variant("patched", "compiled", trial.mode)):
        if measurement.figures is not None:
            loaded.update(measurement.figures.loaded)
            if not measurement.figures.loaded:
                yield _Said("unproven", f"{measurement.name} has imported no patched file")
    missing = [file for file in trial.files if file not in loaded]
    if loaded and missing:
        what = f"{len(missing)} of {len(trial.files)} patched files were not imported"
        yield _Said("note", f"{what}: {_listed(missing)}")
    ran = [figures for figures in (trial.eager[1], trial.compiled[1]) if figures]
    of = max((figures.places.of for figures in ran if figures.places), default=0)
    missed = _never_ran(ran)
    if of and len(missed) == of:
        yield _Said("unproven", f"none of the {of} changed places ran: {_listed(missed)}")
    elif missed:
        yield _Said("note", f"{len(missed)} of {of} changed places did not run: {_listed(missed)}")


def _never_ran(ran: Sequence[Figures]) -> list[str]:
    """The changed places that no variant has executed or traced that has imported their file."""
    watched = [(figures.loaded, figures.places.missed) for figures in ran if figures.places]
    missed = dict.fromkeys(place for _, places in watched for place in places)
    return [p for p in missed if all(p in places for loaded, places in watched if p.rpartition(":")[0] in loaded)]


def _unexercised(results: Results, files: Sequence[str]) -> tuple[str, ...]:
    variants = (v for case in results.cases for v in case.variants if v.tree == "patched")
    ran = [v.figures for v in variants if v.figures]
    never = [file for file in files if not any(file in figures.loaded for figures in ran)]
    return (*never, *_never_ran(ran))


def _eager(trial: _Trial) -> Iterator[_Said]:
    """Patched eager against original eager: the same operators in the same order, so the same bits."""
    if trial.eager[1] is None:
        return
    found = trial.case.comparison("patched", "eager")
    if found is None:
        yield _Said("invalid", "the results hold no comparison of patched eager with original eager")
        return
    if _noisy(trial.case):
        yield _Said("note", "the original does not repeat its own results: only the tolerance is asked, not equal bits")
    yield from _differences("patched eager", found.differences)
    for what, distance in (("outputs", found.outputs), *_trained(found)):
        if distance.finite == 0:
            yield _Said("note", f"all floating {what} are NaN or infinite: that they are equal proves little")
    if not trial.exact:
        yield from _beyond("patched eager: outputs", found.outputs, trial.tolerance, _output_limit(found))
    elif not found.outputs.bitwise:
        yield _Said("different", f"patched eager: outputs not bitwise equal{_figures(found.outputs)}")
    # another summation order is no error in what is trained, even where the outputs must have the same bits
    limit = 16 * _epsilon(found) if trial.exact else _trained_limit(found)
    for what, distance in _trained(found):
        yield from _beyond(f"patched eager: {what}", distance, None, limit)
    yield from _unexplained("patched eager", found)


def _compiled(trial: _Trial) -> Iterator[_Said]:
    """Patched compiled against original eager, with what compiling alone does to the original as the excuse."""
    if trial.compiled[1] is None:
        return
    name = f"patched compiled ({trial.mode})"
    found = trial.case.comparison("patched", "compiled", trial.mode)
    if found is None:
        yield _Said("invalid", f"the results hold no comparison of {name} with original eager")
        return
    alone = trial.case.comparison("original", "compiled", trial.mode)
    known = (*alone.differences, *alone.chosen) if alone else ()
    yield from _differences(name, [text for text in found.differences if text not in known])
    shared = [text for text in found.differences if text in known]
    if shared:
        yield _Said("note", f"compiling the original alone shows this too: {_listed(shared)}")
    other = alone.outputs if alone else None
    tolerance = None if found.rounding else trial.tolerance
    yield from _beyond(f"{name}: outputs", found.outputs, tolerance, _output_limit(found), other)
    theirs = dict(_trained(alone)) if alone else {}
    for what, distance in _trained(found):
        yield from _beyond(f"{name}: {what}", distance, None, _trained_limit(found), theirs.get(what))
    yield from _unexplained(name, found)
    if found.as_exact:
        what = f"{found.as_exact} tensor{'s differ' if found.as_exact > 1 else ' differs'} by rounding"
        yield _Said("note", f"{name}: {what}; docs/harness.md says how that is told")
    if found.chosen:
        yield _Said("note", f"{name}: {chosen(found)}")


def _replayed(trial: _Trial) -> Iterator[_Said]:
    """Patched compiled against original eager, on changed inputs."""
    if (found := trial.case.replayed) is None:
        return
    yield from _differences("with changed inputs", found.different)
    yield _Said("note", found.told)


def chosen(comparison: Comparison) -> str:
    """What is said where rounding has chosen otherwise."""
    equal, moved = "equals eager", "when its weights are moved by a rounding"
    if comparison.rounding:
        apart = _number(comparison.rounding)
        equal = f"differs from eager by at most {apart} (relative), about as eager code does {moved},"
    same = f"each of the {comparison.calls} compiled calls that were compared {equal} on the same arguments"
    return f"{same}; what is chosen from them differs, which eager code does too {moved}: {comparison.chosen[0]}"


def _trained(comparison: Comparison) -> list[tuple[str, Distance]]:
    both = (("gradients", comparison.gradients), ("state", comparison.state))
    return [(what, distance) for what, distance in both if distance is not None]


def _output_limit(comparison: Comparison) -> float:
    return max(1e-3, 16 * _epsilon(comparison), comparison.rounding)


def _trained_limit(comparison: Comparison) -> float:
    return max(1e-2, min(0.5, 256 * _epsilon(comparison)))  # a gradient that is gone differs by 1


def _epsilon(comparison: Comparison) -> float:
    """Outputs without floating values have none; what is trained is then taken to be in float32."""
    return comparison.epsilon or _FLOAT32


def _unexplained(name: str, comparison: Comparison) -> Iterator[_Said]:
    """Unequal bits, but neither a distance nor a difference by name: not to be let through."""
    for what, distance in (("outputs", comparison.outputs), *_trained(comparison)):
        if not distance.bitwise and distance.mae is None and distance.relative is None and not comparison.differences:
            yield _Said("different", f"{name}: {what} not equal")


def _differences(name: str, texts: Sequence[str]) -> Iterator[_Said]:
    yield from (_Said("different", f"{name}: {text}") for text in texts[:_LISTED])
    if len(texts) > _LISTED:
        yield _Said("different", f"{name}: ... and {len(texts) - _LISTED} more differences")


def _beyond(
    what: str, distance: Distance, tolerance: float | None, limit: float, excuse: Distance | None = None
) -> Iterator[_Said]:
    """What is too far away; ``excuse``: how far compiling alone takes the original. NaN is always too far."""
    if distance.bitwise:
        return
    told, excused = _figures(distance), []
    if _not_a_number(distance):
        if excuse is None or not _not_a_number(excuse):
            yield _Said("different", f"{what}: NaN where original eager has none, or the reverse{told}")
            return
        excused.append("NaN")
    mae, relative = distance.mae, distance.relative
    if mae and tolerance is not None and mae >= tolerance:  # with a tolerance of 0, equal values are still equal
        if excuse is not None and excuse.mae is not None and mae <= _MAE_EXCUSE * excuse.mae:
            excused.append(f"MAE {_number(excuse.mae)}")
        else:
            yield _Said("different", f"{what} beyond the tolerance of {_number(tolerance)}{told}")
    if relative is not None and relative > limit:
        if excuse is not None and excuse.relative is not None and relative <= _RELATIVE_EXCUSE * excuse.relative:
            excused.append(f"relative {_number(excuse.relative)}")
        else:
            yield _Said("different", f"{what} beyond the relative limit of {_number(limit)}{told}")
    if excused:
        yield _Said("note", f"{what} far away{told}, but compiling alone differs by {', '.join(excused)}")


def _worse(trial: _Trial) -> Iterator[_Said]:
    """Equal results are no gain when less of the code is compiled, or when it only breaks more."""
    before, after = trial.compiled
    if before is None or after is None:
        return
    old, new = before.counts, after.counts
    lost = before.operators - after.operators
    if new.limit_hits > old.limit_hits:
        yield _Said("worse", f"recompile-limit hits {old.limit_hits} -> {new.limit_hits}: less is compiled")
    if new.dropped_frames > old.dropped_frames:
        told = f"dropped frames {old.dropped_frames} -> {new.dropped_frames}"
        none = after.operators > 0 and lost <= 0  # as many operators are in graphs: what is given up holds none
        yield (
            _Said("note", f"{told}, with no operator less in graphs")
            if none
            else _Said("worse", f"{told}: less is compiled")
        )
    if before.launches and not after.launches:
        yield _Said("worse", f"graph launches {before.launches} -> 0: nothing is compiled")
    # sizes of numbers that are known have no operators: where each call is one graph nothing else runs
    pieces = new.breaks or new.dropped_frames or new.limit_hits or any(call.launches != 1 for call in after.settled)
    if lost >= 10 and 2 * after.operators < before.operators and (pieces or not after.settled):
        yield _Said("worse", f"captured operators {before.operators} -> {after.operators}: less is compiled")
    gained = (
        new.breaks < old.breaks
        or new.recompiles < old.recompiles
        or after.launches < before.launches
        or new.dropped_frames < old.dropped_frames
        or new.limit_hits < old.limit_hits
    )
    more = [
        f"{what} {was} -> {now}"
        for what, was, now in (
            ("breaks", old.breaks, new.breaks),
            ("recompiles", old.recompiles, new.recompiles),
            ("CUDA-graph skips", old.cudagraph_skips, new.cudagraph_skips),
        )
        if now > was
    ]
    if more and not gained:
        yield _Said("worse", f"{', '.join(more)}, and nothing got less")


def _slower(trial: _Trial) -> Iterator[_Said]:
    for what, (before, after) in (("eager", trial.eager), (f"compiled ({trial.mode})", trial.compiled)):
        if before and after and before.warm and after.warm and after.warm.low_ms > before.warm.high_ms:
            told = f"{before.warm.median_ms:.3g} -> {after.warm.median_ms:.3g} ms"
            yield _Said("note", f"{what} is slower: {told}, and the quartile ranges do not overlap")


def _not_a_number(distance: Distance) -> bool:
    return any(figure is not None and math.isnan(figure) for figure in (distance.mae, distance.max, distance.relative))


def _figures(distance: Distance) -> str:
    figures = (("MAE", distance.mae), ("max", distance.max), ("relative", distance.relative))
    told = [f"{name} {_number(figure)}" for name, figure in figures if figure is not None]
    told += [f"worst at {distance.worst}"] if distance.worst else []
    return f" ({', '.join(told)})" if told else ""


def _number(figure: float) -> str:
    return f"{figure:.3g}"


def _listed(texts: Sequence[str]) -> str:
    more = [f"... and {len(texts) - _LISTED} more"] if len(texts) > _LISTED else []
    return ", ".join([*texts[:_LISTED], *more])
