"""What the harness has measured, and the verdict: tables for people, Markdown to keep, JSON for programs."""

from __future__ import annotations

import dataclasses
import json as stdlib_json
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from patcher.harness.compare import TREES, Judgement, Verdict, as_much, ended, speedup, within_noise
from patcher.harness.measured import CaseResult, Counts, Figures, Recompile, Results, Site, Warm

SCHEMA = 1

CASE_HEAD = (
    "case",
    "MAE diff",
    "max diff",
    "breaks",
    "recompiles",
    "eager ms",
    "compiled before",
    "compiled after",
    "speedup",
    "equivalent",
)
VARIANT_HEAD = (
    "case",
    "variant",
    "graphs",
    "launches",
    "operators",
    "limit hits",
    "dropped frames",
    "CUDA-graph skips",
    "cold s",
    "warm ms",
    "memory MB",
    "MAE to float64",
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
_WIDTH, _MARKDOWN_WIDTH, _LISTED = 160, 300, 5
_POSITIONAL = re.compile(r"TypeError: \S*forward\(\) takes .*positional arguments? but .*given")
_HINT = "a call of one tensor is written ((x,), {}): a tuple of arguments, and a dict of those with names"
_NONE = "-"

Row = tuple[str, ...]


class _Noted(NamedTuple):
    """A break, a recompile or the like, whatever its kind."""

    where: str
    text: str
    events: int


class _Fate(NamedTuple):
    """What became of one of them: ``removed``, ``remains``, ``new``, or where one tree has no figures, whose it is."""

    word: str
    times: str
    where: str
    text: str


class _Change(NamedTuple):
    """All of one kind: ``title`` is ``breaks 25 -> 0``."""

    title: str
    fates: tuple[_Fate, ...]


def harness_text(results: Results, judgement: Judgement) -> str:
    """For wide terminals and files: the table, the details, what was removed and what remains, the verdicts."""
    rows, details = _ran(results, judgement)
    lines = [*_aligned(CASE_HEAD, rows), "", *_aligned(VARIANT_HEAD, details)] if rows else []
    for case, verdict in judged(results, judgement):
        told = list(removed_and_remaining(results, case, verdict, _WIDTH)) if rows else []
        same = _as_in(results, case, verdict.mode)
        if told or same:
            lines += ["", label(results, verdict) + (f": {told[0]}" if same else "")]
        lines += [] if same else [f"  {line}" for line in told]
    lines += [""] if rows else []
    for _, verdict in judged(results, judgement):
        lines.append(f"{label(results, verdict)}: {verdict.status}")
        lines += [f"  {_one_line(reason, _MARKDOWN_WIDTH)}" for reason in reasons_of(verdict)]
        lines += [f"  note: {_one_line(note, _WIDTH)}" for note in verdict.notes]
    if judgement.verdicts and not rows:
        return "".join(line + "\n" for line in lines)
    lines += unexercised(judgement, _WIDTH)
    for title, tail in unfinished(results, _WIDTH):
        lines += ["", title, *(f"    {line}" for line in tail)]
    lines += ["", "; ".join(environment_lines(results)), f"command: {_command(results)}", CASE_MEANING, VARIANT_MEANING]
    return "".join(line + "\n" for line in lines)


def _ran(results: Results, judgement: Judgement) -> tuple[list[Row], list[Row]]:
    """The rows of both tables for the cases that say something: one that does not run itself has no figures."""
    silent = {case.name for case in results.cases if case.variant("original", "eager").figures is None}
    pairs = zip(judged(results, judgement), case_rows(results, judgement), strict=True)
    return [row for (case, _), row in pairs if case.name not in silent], variant_rows(results, silent)


def removed_and_remaining(results: Results, case: CaseResult, verdict: Verdict, width: int) -> Iterator[str]:
    """What became of breaks, recompiles and skips, a line each; one line where it is as in the first mode."""
    if same := _as_in(results, case, verdict.mode):
        yield f"the same as [{same}]"
        return
    for change in _changes(case, verdict.mode):
        yield change.title
        yield from (f"  {line}" for line in _listed(change, width - 2))


def hint(message: str) -> str:
    """What to do about a case that failed with ``message``, or nothing."""
    return _HINT if _POSITIONAL.search(message) else ""


def reasons_of(verdict: Verdict) -> Iterator[str]:
    """Why a verdict is what it is, a line each, with what to do where that is known."""
    for reason in verdict.reasons:
        yield reason
        if told := hint(reason):
            yield f"hint: {told}"


def harness_markdown(results: Results, judgement: Judgement) -> str:
    """A page to keep beside the code: what ``harness_text`` tells, with nothing left out of the lists."""
    cases = ", ".join(dict.fromkeys(_escaped(case.name) for case in results.cases))
    lines = [f"# Original against patched: {cases}", ""]
    lines += [f"- {_escaped(fact)}" for fact in environment_lines(results)]
    lines += ["", f"    {_command(results)}", ""]
    lines += [*_piped(CASE_HEAD, case_rows(results, judgement)), "", CASE_MEANING, ""]
    lines += ["## Variants", "", *_piped(VARIANT_HEAD, variant_rows(results)), "", VARIANT_MEANING]
    for case, verdict in judged(results, judgement):
        lines += ["", f"## {_escaped(label(results, verdict))}: {verdict.status}", ""]
        lines += [f"- {_escaped(_one_line(reason, _MARKDOWN_WIDTH))}" for reason in reasons_of(verdict)]
        lines += [f"- Note: {_escaped(_one_line(note, _MARKDOWN_WIDTH))}" for note in verdict.notes]
        same, changes = _as_in(results, case, verdict.mode), _changes(case, verdict.mode)
        if same:
            lines.append(f"- Breaks, recompiles and skips: the same as [{_escaped(same)}]")
        for change in () if same else changes:
            lines.append(f"- {change.title}")
            lines += [f"  - {_span(fate)}" for fate in change.fates]
    never = unexercised(judgement, _MARKDOWN_WIDTH)
    endings = list(unfinished(results, _MARKDOWN_WIDTH))
    lines += ["", *(_escaped(line) for line in never)] if never else []
    lines += ["", "## What did not run to its end"] if endings else []
    for title, tail in endings:
        lines += ["", _escaped(title), *([""] if tail else []), *(f"    {line}" for line in tail)]
    text = "".join(line + "\n" for line in lines)
    while "\n\n\n" in text:  # a verdict with nothing to tell
        text = text.replace("\n\n\n", "\n\n")
    return text.rstrip("\n") + "\n"


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
        _decimal(eager.warm.median_ms if eager and eager.warm else None),
        _decimal(old.median_ms if old else None),
        _decimal(new.median_ms if new else None),
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
                    _decimal(figures.cold_seconds),
                    f"{_decimal(warm.median_ms)} [{_decimal(warm.low_ms)}-{_decimal(warm.high_ms)}]" if warm else _NONE,
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


def _decimal(value: float | None) -> str:
    if value is None:
        return _NONE
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f}"


def _aligned(head: Row, rows: Sequence[Row]) -> list[str]:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
    return [lines[0], "-|-".join("-" * width for width in widths), *lines[1:]]


def _piped(head: Row, rows: Sequence[Row]) -> list[str]:
    lines = [f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in (head, *rows)]
    return [lines[0], "|" + "---|" * len(head), *lines[1:]]


# -- what was removed and what remains


def _changes(case: CaseResult, mode: str) -> list[_Change]:
    before, after = _compiled(case, mode)
    kinds: tuple[tuple[str, Callable[[Figures], list[_Noted]]], ...] = (
        ("breaks", lambda figures: _sites(figures.breaks)),
        ("recompiles", lambda figures: _recompiles(figures.recompiles)),
        ("recompile limit hits", lambda figures: _recompiles(figures.limit_hits)),
        ("dropped frames", lambda figures: _sites(figures.dropped_frames)),
        ("CUDA-graph skips", lambda figures: _sites(figures.cudagraph_skips)),
    )
    changes = []
    for name, read in kinds:
        old, new = read(before) if before else None, read(after) if after else None
        if old or new:
            was, now = (_NONE if found is None else str(sum(item.events for item in found)) for found in (old, new))
            changes.append(_Change(f"{name} {was} -> {now}", tuple(_fates(old, new))))
    return changes


def _as_in(results: Results, case: CaseResult, mode: str) -> str:
    """The first mode, when in this one the same became of everything."""
    first = results.modes[0]
    changes = _changes(case, mode)
    return first if changes and mode != first and changes == _changes(case, first) else ""


def _sites(items: Iterable[Site]) -> list[_Noted]:
    return [_Noted(item.where, item.reason, item.count) for item in items]


def _recompiles(items: Iterable[Recompile]) -> list[_Noted]:
    return [_Noted(item.where, f"{item.function}: {item.guard}".rstrip(": "), item.count) for item in items]


def _fates(before: list[_Noted] | None, after: list[_Noted] | None) -> Iterator[_Fate]:
    """The removed ones first. A patch moves lines: the same reason in the same file is paired with the nearest line."""
    if before is None or after is None:
        word = "patched" if before is None else "original"
        yield from (_Fate(word, f"{item.events}x", item.where, item.text) for item in before or after or ())
        return
    left, remain, new = list(before), [], []
    for item in after:
        alike = [old for old in left if old.text == item.text and _file(old) == _file(item)]
        if alike:
            nearest = min(alike, key=lambda old: abs(_number(old) - _number(item)))
            left.remove(nearest)
            times = f"{item.events}x" if nearest.events == item.events else f"{nearest.events} -> {item.events}x"
            remain.append(_Fate("remains", times, item.where, item.text))
        else:
            new.append(_Fate("new", f"{item.events}x", item.where, item.text))
    yield from (_Fate("removed", f"{item.events}x", item.where, item.text) for item in left)
    yield from (*remain, *new)


def _file(item: _Noted) -> str:
    return item.where.rpartition(":")[0]


def _number(item: _Noted) -> int:
    line = item.where.rpartition(":")[2]
    return int(line) if line.isdecimal() else 0


def _listed(change: _Change, width: int) -> Iterator[str]:
    """At most a few of each fate."""
    for word in dict.fromkeys(fate.word for fate in change.fates):
        fates = [fate for fate in change.fates if fate.word == word]
        for fate in fates[:_LISTED]:
            place = f"{fate.where}: " if fate.where else ""
            yield f"{word:<8} " + _one_line(f"{fate.times} {place}{fate.text}", width - 11)
        if len(fates) > _LISTED:
            yield f"{word:<8} ... and {len(fates) - _LISTED} more"


# -- the rest


def unexercised(judgement: Judgement, width: int) -> list[str]:
    """What no case has run, on one line of at most ``width``, or nothing."""
    never = judgement.unexercised
    return [_one_line(f"patched, but run by no case: {', '.join(never)}", width)] if never else []


def unfinished(results: Results, width: int) -> Iterator[tuple[str, list[str]]]:
    """The variants without figures, and the last lines of their output."""
    for case in results.cases:
        for variant in case.variants:
            if variant.figures is None and (variant.message or variant.tail):
                title = _one_line(f"{case.name}: {ended(variant)}", width)
                tail = [] if variant.status == "skipped" else [_printable(line)[:width] for line in variant.tail]
                yield title, tail


def environment_lines(results: Results) -> list[str]:
    """Where, with what and on which tree it ran, a short line each."""
    place = results.environment
    facts = [f"torch {place.torch or '?'}", f"Python {place.python or '?'}"]
    cuda = f"CUDA {place.cuda}" if place.cuda else ""
    threads = f"{place.threads} thread{'' if place.threads == 1 else 's'}" if place.threads else ""
    more = ", ".join(part for part in (cuda, place.platform, threads) if part)
    facts.append(f"device {place.device or '?'}" + (f" ({more})" if more else ""))
    facts.append(f"backend {results.backend}, mode {', '.join(results.modes)}" + (", quick" if results.quick else ""))
    commit = results.tree.commit[:12] if results.tree.commit else "not in git"
    changed = " with uncommitted changes" if results.tree.dirty else ""
    facts.append(f"tree {commit}{changed}, patch {results.tree.digest[:12] or '?'}")
    facts.append(f"{results.tool}, {results.started}, {results.seconds:.0f} s")
    return [_one_line(fact, _WIDTH) for fact in facts]


def _command(results: Results) -> str:
    return _printable(shlex.join(results.command))


def _one_line(text: str, width: int) -> str:
    line = " ".join(_printable(text).split())
    return line if len(line) <= width else line[: width - 3] + "..."


def _printable(text: str) -> str:
    """Without what would move a terminal's cursor."""
    return "".join(char if char.isprintable() else " " for char in text)


def _escaped(text: str) -> str:
    for char in "\\`*<|":
        text = text.replace(char, "\\" + char)
    return text.replace("__", "\\_\\_")


def _span(fate: _Fate) -> str:
    """As inline code, because reasons hold whatever Python source holds."""
    text = _one_line(fate.text, _MARKDOWN_WIDTH)
    fence = "``" if "`" in text else "`"
    pad = " " if fence == "``" else ""
    place = f"`{_one_line(fate.where, _MARKDOWN_WIDTH)}`: " if fate.where else ""
    return f"{fate.word} {fate.times} {place}{fence}{pad}{text}{pad}{fence}"
