"""The case table of the harness, and what each fix earned."""

from __future__ import annotations

from collections.abc import Iterator

from patcher.diagnose.diagnosis import Diagnosis, Totals, Tried
from patcher.harness.compare import Judgement
from patcher.harness.measured import Results
from patcher.report.harness import (
    CASE_HEAD,
    VARIANT_HEAD,
    case_rows,
    judged,
    label,
    unexercised,
    unfinished,
    variant_rows,
)
from patcher.report.markdown.blocks import (
    LONGEST,
    NONE,
    block,
    cells,
    code,
    decimal,
    inline,
    many,
    point,
    prose,
    sentence,
    shortened,
    table,
)
from patcher.report.recommending import compared
from patcher.report.sections import TITLES


def earned(diagnosis: Diagnosis) -> Iterator[str]:
    """What became of each fix, and the tree before and after."""
    proof = diagnosis.proof
    if proof is None:
        return
    yield f"## {TITLES['proof']}"
    yield ""
    yield f"{many(proof.measurements, 'measurement')}."
    if proof.tried:
        yield ""
        yield from table(("fix", "at", "outcome", "why"), [_tried(item) for item in proof.tried])
    yield ""
    yield from table(("in all cases", "before", "after"), _totals(proof.before, proof.after))
    shown = {fix.diff for cause in diagnosis.causes for fix in cause.fixes}
    for item in proof.tried:
        if item.diff and item.diff not in shown:
            yield ""
            yield f"**{inline(', '.join(item.fixes))}** ({item.outcome})"
            yield ""
            yield block(item.diff, "diff")
    if proof.restore:
        yield ""
        yield "To undo it:"
        yield ""
        yield block(proof.restore, "bash")


def _tried(item: Tried) -> tuple[str, ...]:
    return (
        inline(", ".join(item.fixes)),
        ", ".join(code(where) for where in item.where),
        item.outcome,
        inline(item.reason),
    )


def _totals(before: Totals | None, after: Totals | None) -> Iterator[tuple[str, str, str]]:
    names = ("breaks", "recompiles", "recompile limit hits", "dropped frames", "CUDA-graph skips")

    def figures(totals: Totals | None) -> tuple[str, ...]:
        if totals is None:
            return (NONE,) * (len(names) + 2)
        counts = (totals.breaks, totals.recompiles, totals.limit_hits, totals.dropped_frames, totals.cudagraph_skips)
        return (*(str(number) for number in counts), str(totals.launches), decimal(totals.warm_ms))

    rows = (*names, "launches in one pass", "warm ms of one pass")
    yield from zip(rows, figures(before), figures(after), strict=True)


def performance(diagnosis: Diagnosis) -> Iterator[str]:
    """After a proof, the tree as it was left is what counts."""
    proof = diagnosis.proof
    results, judgement, against = diagnosis.results, diagnosis.judgement, compared(None)
    if results is None:
        return
    yield f"## {TITLES['performance']}"
    if proof is not None and proof.results is not None:
        if judgement is not None:
            yield from _against(against)
            yield from _case_table(results, judgement)
        results, judgement, against = proof.results, proof.judgement, compared(proof)
    if judgement is not None:
        yield from _against(against)
        yield from _case_table(results, judgement)
        yield ""
        yield from _verdicts(results, judgement)
    yield ""
    yield from table(cells(VARIANT_HEAD), (cells(row) for row in variant_rows(results)))
    endings = list(unfinished(results, LONGEST))
    if endings:
        yield ""
        yield "### What did not run to its end"
    for ended, tail in endings:
        yield ""
        yield from prose(ended)
        if tail:
            yield ""
            yield block("\n".join(tail), "text")


def _against(told: str) -> Iterator[str]:
    yield ""
    yield f"### {sentence(told).rstrip('.')}"
    yield ""


def _case_table(results: Results, judgement: Judgement) -> list[str]:
    return table(cells(CASE_HEAD), (cells(row) for row in case_rows(results, judgement)))


def _verdicts(results: Results, judgement: Judgement) -> Iterator[str]:
    for _, verdict in judged(results, judgement):
        yield from point(f"{label(results, verdict)}: {verdict.status}")
        for text in (*verdict.reasons, *(f"Note: {note}" for note in verdict.notes)):
            yield from point(shortened(text), 1)
    for line in unexercised(judgement, LONGEST):
        yield from point(line)
