"""What the harness has measured, and the verdict: rows of tables, what has changed, JSON for programs."""

from __future__ import annotations

import dataclasses
import json as stdlib_json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from patcher.harness.compare import TREES, Judgement, Verdict, as_much, speedup, within_noise
from patcher.harness.measured import CaseResult, Counts, Figures, Recompile, Results, Site, Warm
from patcher.report.markdown.blocks import decimal
from patcher.words import COUNTED

SCHEMA = 1

CASE_HEAD = tuple(
    "case,MAE diff,max diff,breaks,recompiles,eager ms,compiled before,compiled after,speedup,equivalent".split(",")
)
VARIANT_HEAD = tuple(
    "case,variant,graphs,launches,operators,limit hits,dropped frames,CUDA-graph skips,cold s,warm ms,memory MB,"
    "MAE to float64".split(",")
)
_ANSWERS = {
    "equivalent": "yes",
    "different": "NO",
    "worse": "NO (worse)",
    "failed": "NO (failed)",
    "unproven": "NO (unproven)",
    "invalid": "NO (invalid case)",
}
CASE_MEANING = (
    "MAE, max: outputs of patched compiled against original eager. breaks, recompiles: sums over all counted passes,"
    " before -> after. ms: median of one warm pass over all calls, when nothing is compiled any more."
    " speedup: compiled before / compiled after; (noise): the quartile ranges overlap, or"
    " eager times differ as much."
)
VARIANT_MEANING = (
    "launches, operators: compiled graphs that ran in one settled pass, and the captured operators inside them."
    " cold s: the first pass, compilation included. warm ms: median [quartiles]."
    " MAE to float64: the smaller, the closer to the truth."
)
_POSITIONAL = re.compile(r"TypeError: \S*forward\(\) takes .*positional arguments? but .*given")
_HINT = "a call of one tensor is written ((x,), {}): a tuple of arguments, and a dict of those with names"
_NONE = "-"

Row = tuple[str, ...]


class _Noted(NamedTuple):
    """A break, a recompile or the like, whatever its kind."""

    where: str
    text: str
    events: int


class Fate(NamedTuple):
    """What became of one of them: ``removed``, ``remains``, ``new``, or where one tree has no figures, whose it is."""

    word: str
    times: str
    where: str
    text: str


class Change(NamedTuple):
    """All of one kind: ``title`` is ``breaks 25 -> 0``."""

    title: str
    fates: tuple[Fate, ...]


def hint(message: str) -> str:
    """What to do about a case that failed with ``message``, or nothing."""
    return _HINT if _POSITIONAL.search(message) else ""


def reasons_of(verdict: Verdict) -> Iterator[str]:
    """Why a verdict is what it is, a line each, with what to do where that is known."""
    for reason in verdict.reasons:
        yield reason
        if told := hint(reason):
            yield f"hint: {told}"


def harness_json(results: Results, judgement: Judgement) -> str:
    """The results as they were read, with the verdicts."""
    document = {"schema": SCHEMA, **measured(results, judgement)}
    return stdlib_json.dumps(document, indent=2, allow_nan=False) + "\n"


def measured(results: Results, judgement: Judgement | None) -> dict[str, Any]:
    """The same for a document that has more in it."""
    return {
        "results": plain(results.document),
        "verdicts": plain(judgement.verdicts) if judgement else [],
        "unexercised": plain(judgement.unexercised) if judgement else [],
        "equivalent": judgement.equivalent if judgement else None,
    }


def plain(value: Any) -> Any:
    """As JSON has it, which knows no NaN and no infinity."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# -- the tables


def case_rows(results: Results, judgement: Judgement) -> list[Row]:
    """A row under ``CASE_HEAD`` for each case and mode."""
    return [_row(case, verdict, label(results, verdict)) for case, verdict in judged(results, judgement)]


def _row(case: CaseResult, verdict: Verdict, label: str) -> Row:
    eager, patched = (case.variant(tree, "eager").figures for tree in TREES)
    before, after = _compiled(case, verdict.mode)
    compared, suffix = case.comparison("patched", "compiled", verdict.mode), ""
    if compared is None:
        compared, suffix = case.comparison("patched", "eager"), " (eager)"
    mae, largest = (compared.outputs.mae, compared.outputs.max) if compared else (None, None)
    old, new = before.warm if before else None, after.warm if after else None
    return (
        label,
        _NONE if mae is None else _figure(mae) + suffix,
        _NONE if largest is None else _figure(largest) + suffix,
        _arrow(before, after, lambda counts: counts.breaks),
        _arrow(before, after, lambda counts: counts.recompiles),
        decimal(eager.warm.median_ms if eager and eager.warm else None),
        decimal(old.median_ms if old else None),
        decimal(new.median_ms if new else None),
        _faster(old, new, eager.warm if eager else None, patched.warm if patched else None),
        _ANSWERS[verdict.status],
    )


def variant_rows(results: Results, without: Collection[str] = ()) -> list[Row]:
    """A row under ``VARIANT_HEAD`` for each variant but float64; the case is named in its first one."""
    rows = []
    for case in results.cases:
        name = case.name
        if name in without:
            continue
        for variant in case.variants:
            if variant.kind == "float64":
                continue
            figures = variant.figures or Figures()
            counts, warm, memory = figures.counts, figures.warm, figures.memory
            known = variant.figures is not None and variant.kind == "compiled"
            counted = (counts.graphs, figures.launches, figures.operators, counts.limit_hits)
            given_up = (counts.dropped_frames, counts.cudagraph_skips)
            compared = case.comparison(variant.tree, variant.kind, variant.mode)
            rows.append(
                (
                    name,
                    variant.name,
                    *(str(count) if known else _NONE for count in (*counted, *given_up)),
                    decimal(figures.cold_seconds),
                    f"{decimal(warm.median_ms)} [{decimal(warm.low_ms)}-{decimal(warm.high_ms)}]" if warm else _NONE,
                    f"{memory.bytes / 1e6:.0f} ({memory.kind})" if memory else _NONE,
                    _NONE if compared is None or compared.float64 is None else _figure(compared.float64),
                )
            )
            name = ""
    return rows


def judged(results: Results, judgement: Judgement) -> Iterator[tuple[CaseResult, Verdict]]:
    """The verdicts are by case, then mode."""
    cases = (case for case in results.cases for _ in results.modes)
    return zip(cases, judgement.verdicts, strict=True)


def label(results: Results, verdict: Verdict) -> str:
    """The case, and its mode where there are several."""
    return f"{verdict.case} [{verdict.mode}]" if len(results.modes) > 1 else verdict.case


def _compiled(case: CaseResult, mode: str) -> tuple[Figures | None, Figures | None]:
    return case.variant("original", "compiled", mode).figures, case.variant("patched", "compiled", mode).figures


def _arrow(before: Figures | None, after: Figures | None, count: Callable[[Counts], int]) -> str:
    if before is None and after is None:
        return _NONE
    was, now = (str(count(figures.counts)) if figures else _NONE for figures in (before, after))
    return f"{was} -> {now}"


def _faster(before: Warm | None, after: Warm | None, eager: Warm | None, patched: Warm | None) -> str:
    if before is None or after is None or math.isnan(speedup(before, after)):
        return _NONE
    noise = within_noise(before, after) or (eager and patched and as_much(before, after, eager, patched))
    return f"{speedup(before, after):.2f}x{' (noise)' if noise else ''}"


def _figure(value: float) -> str:
    return f"{value:.2g}"


# -- what was removed and what remains


def changes(case: CaseResult, mode: str) -> list[Change]:
    """Return what became of breaks, recompiles and skips, by kind."""
    before, after = _compiled(case, mode)
    found = []
    for name, word in COUNTED.items():
        old, new = (_noted(getattr(figures, name)) if figures else None for figures in (before, after))
        if old or new:
            was, now = (_NONE if some is None else str(sum(item.events for item in some)) for some in (old, new))
            found.append(Change(f"{word}s {was} -> {now}", tuple(_fates(old, new))))
    return found


def same_as(results: Results, case: CaseResult, mode: str) -> str:
    """Return the first mode, when in this one the same became of everything; else ""."""
    first = results.modes[0]
    found = changes(case, mode) if mode != first else []
    return first if found and found == changes(case, first) else ""


def _noted(items: Iterable[Site | Recompile]) -> list[_Noted]:
    return [
        _Noted(item.where, item.reason, item.count)
        if isinstance(item, Site)
        else _Noted(item.where, f"{item.function}: {item.guard}".rstrip(": "), item.count)
        for item in items
    ]


def _fates(before: list[_Noted] | None, after: list[_Noted] | None) -> Iterator[Fate]:
    """The removed ones first. A patch moves lines: the same reason in the same file is paired with the nearest line."""
    if before is None or after is None:
        word = "patched" if before is None else "original"
        yield from (Fate(word, f"{item.events}x", item.where, item.text) for item in before or after or ())
        return
    left, remain, new = list(before), [], []
    for item in after:
        alike = [old for old in left if old.text == item.text and _file(old) == _file(item)]
        if alike:
            nearest = min(alike, key=lambda old: abs(_number(old) - _number(item)))
            left.remove(nearest)
            times = f"{item.events}x" if nearest.events == item.events else f"{nearest.events} -> {item.events}x"
            remain.append(Fate("remains", times, item.where, item.text))
        else:
            new.append(Fate("new", f"{item.events}x", item.where, item.text))
    yield from (Fate("removed", f"{item.events}x", item.where, item.text) for item in left)
    yield from (*remain, *new)


def _file(item: _Noted) -> str:
    return item.where.rpartition(":")[0]


def _number(item: _Noted) -> int:
    line = item.where.rpartition(":")[2]
    return int(line) if line.isdecimal() else 0
