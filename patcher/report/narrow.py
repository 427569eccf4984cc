"""What the harness has measured, for a terminal of 80 columns: a block for each case instead of tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from patcher.harness.compare import Judgement, ended
from patcher.harness.measured import CaseResult, Figures, Results
from patcher.report.harness import (
    CASE_HEAD,
    CASE_MEANING,
    case_rows,
    environment_lines,
    hint,
    judged,
    label,
    reasons_of,
    removed_and_remaining,
    unexercised,
)

_WIDTH, _LISTED = 80, 10
_MEASURED = CASE_HEAD[1:-1]  # the name and the verdict are the heading


def harness_narrow(results: Results, judgement: Judgement) -> str:
    """For a terminal: a block for each case and mode, what was removed and what remains, the verdict."""
    lines: list[str] = []
    for (case, verdict), row in zip(judged(results, judgement), case_rows(results, judgement), strict=True):
        lines.append(f"{label(results, verdict)}: {verdict.status}")
        if verdict.status != "invalid":
            lines += [f"  {name:<15}  {cell}" for name, cell in zip(_MEASURED, row[1:-1], strict=True)]
            lines += [f"  {line}" for line in removed_and_remaining(results, case, verdict, _WIDTH - 2)]
        told = [*reasons_of(verdict), *(f"note: {note}" for note in verdict.notes)]
        lines += [line for reason in told for line in _wrapped(reason)]
        lines.append("")
    if any(verdict.status != "invalid" for verdict in judgement.verdicts):
        lines += unexercised(judgement, _WIDTH)
        environment = "; ".join(environment_lines(results))
        lines += [*textwrap.wrap(environment, _WIDTH), *textwrap.wrap(CASE_MEANING, _WIDTH)]
        lines.append("--wide shows a row for each variant: graphs, launches, operators, memory.")
    return "".join(line + "\n" for line in lines)


def as_it_is(results: Results) -> tuple[str, bool]:
    """What the cases do with nothing patched: where they break and recompile; and whether all of them run."""
    lines, runs = [], True
    for case in results.cases:
        eager = case.variant("original", "eager")
        if eager.figures is None:
            runs = False
            lines += [f"{case.name}: does not run", *_wrapped(ended(eager))]
            lines += _wrapped(f"hint: {told}") if (told := hint(eager.message)) else []
            continue
        for mode in results.modes:
            lines += _compiled(case, mode, f"{case.name} [{mode}]" if len(results.modes) > 1 else case.name)
    return "".join(line + "\n" for line in lines), runs


def _compiled(case: CaseResult, mode: str, name: str) -> Iterator[str]:
    variant = case.variant("original", "compiled", mode)
    if variant.figures is None:
        yield f"{name}: does not compile"
        yield from _wrapped(ended(variant))
        return
    counts = variant.figures.counts
    told = (
        (counts.breaks, "graph break"),
        (counts.recompiles, "recompile"),
        (counts.dropped_frames, "dropped frame"),
        (counts.cudagraph_skips, "CUDA-graph skip"),
    )
    some = [f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in told if count]
    yield f"{name}: {', '.join(some) or 'no graph breaks and no recompiles'}"
    places = list(_places(variant.figures))
    for text in places[:_LISTED]:
        yield from _wrapped(text)
    if len(places) > _LISTED:
        yield f"  ... and {len(places) - _LISTED} more"


def _places(figures: Figures) -> Iterator[str]:
    for site in (*figures.breaks, *figures.dropped_frames, *figures.cudagraph_skips):
        yield f"{site.count}x {site.where}: {site.reason}"
    for again in (*figures.recompiles, *figures.limit_hits):
        yield f"{again.count}x {again.where}: {again.function}: {again.guard}"


def _wrapped(text: str) -> list[str]:
    clean = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return textwrap.wrap(clean[:400], _WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False)
