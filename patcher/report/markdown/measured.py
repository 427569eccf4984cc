"""What the harness has measured as Markdown: alone, in a diagnosis, and what each fix earned."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace

from patcher.diagnose.diagnosis import Diagnosis, Totals, Tried
from patcher.harness.compare import Judgement, ended
from patcher.harness.measured import CaseResult, Results
from patcher.report.harness import (
    CASE_HEAD,
    CASE_MEANING,
    VARIANT_HEAD,
    VARIANT_MEANING,
    case_rows,
    changes,
    hint,
    judged,
    label,
    reasons_of,
    same_as,
    variant_rows,
)
from patcher.report.markdown.blocks import (
    NONE,
    Blocks,
    block,
    cells,
    code,
    decimal,
    inline,
    page,
    point,
    points,
    prose,
    sentence,
    shortened,
    table,
)
from patcher.report.recommending import compared
from patcher.words import COUNTED, counts, many

_LISTED = 5  # of each kind, where a report is to be short


def earned(diagnosis: Diagnosis) -> Blocks:
    """What became of each fix, and the tree before and after."""
    proof = diagnosis.proof
    if proof is None:
        return
    yield f"{many(proof.measurements, 'measurement')}."
    if proof.tried:
        yield table(("fix", "at", "outcome", "why"), map(_tried, proof.tried))
    yield table(("in all cases", "before", "after"), _totals(proof.before, proof.after))
    shown = {fix.diff for cause in diagnosis.causes for fix in cause.fixes}
    for item in proof.tried:
        if item.diff and item.diff not in shown:
            yield f"**{inline(', '.join(item.fixes))}** ({item.outcome})"
            yield block(item.diff, "diff")
    if proof.restore:
        yield "To undo it:"
        yield block(proof.restore, "bash")


def _tried(item: Tried) -> tuple[str, ...]:
    return (
        inline(", ".join(item.fixes)),
        ", ".join(code(where) for where in item.where),
        item.outcome,
        inline(item.reason),
    )


def _totals(*states: Totals | None) -> Iterator[tuple[str, ...]]:
    for name in COUNTED:
        yield f"{COUNTED[name]}s", *(NONE if one is None else str(getattr(one, name)) for one in states)
    yield "launches in one pass", *(NONE if one is None else str(one.launches) for one in states)
    yield "warm ms of one pass", *(NONE if one is None else decimal(one.warm_ms) for one in states)


def performance(diagnosis: Diagnosis) -> Blocks:
    """After a proof, the tree as it was left is what counts."""
    proof = diagnosis.proof
    results, judgement, against = diagnosis.results, diagnosis.judgement, compared(None)
    if results is None:
        return
    if proof is not None and proof.results is not None:
        if judgement is not None:
            yield f"### {sentence(against).rstrip('.')}"
            yield _case_table(results, judgement)
        results, judgement, against = proof.results, proof.judgement, compared(proof)
    if judgement is not None:
        yield f"### {sentence(against).rstrip('.')}"
        yield _case_table(results, judgement)
        yield list(_verdicts(results, judgement))
    yield _variant_table(results)
    yield from _endings(results, "###")


def harness_markdown(results: Results, judgement: Judgement, brief: bool = False) -> str:
    """Return a page to keep beside the code. ``brief``: without what each variant took, and with short lists."""
    return page(_harness(results, judgement, brief))


def _harness(results: Results, judgement: Judgement, brief: bool) -> Blocks:
    ran = any(case.variant("original", "eager").figures for case in results.cases)
    if ran:
        yield f"# Original against patched: {inline(', '.join(dict.fromkeys(case.name for case in results.cases)))}"
        yield _case_table(results, judgement)
    yield list(_verdicts(results, judgement, _LISTED if brief else None))
    if not ran:
        return
    yield from _endings(results, "##")
    if not brief:
        yield "## Variants"
        yield _variant_table(results)
    yield "## How it was measured"
    yield points(*_facts(results))
    yield block(shlex.join(results.command), "bash")
    yield prose(CASE_MEANING)
    yield "" if brief else prose(VARIANT_MEANING)


def as_it_is(results: Results) -> tuple[str, bool]:
    """What the cases do with nothing patched: where they break and recompile; and whether all of them run."""
    lines, runs = list[str](), True
    for case in results.cases:
        eager = case.variant("original", "eager")
        runs = runs and eager.figures is not None
        for mode in results.modes:
            compiled = case.variant("original", "compiled", mode)
            broken = next((variant for variant in (eager, compiled) if variant.figures is None), None)
            if broken or compiled.figures is None:
                told = ended(broken or compiled)
                lines += [*point(f"{case.name}: {told}"), *(point(f"hint: {hint(told)}", 1) if hint(told) else ())]
                continue
            named = f"{case.name} [{mode}]" if len(results.modes) > 1 else case.name
            lines += point(f"{named}: {counts(compiled.figures.counts) or 'no breaks and no recompiles'}")
            alone = replace(case, variants=tuple(one for one in case.variants if one.tree == "original"))
            lines += _changes(alone, mode, 2 * _LISTED)
    return page([lines]), runs


def _case_table(results: Results, judgement: Judgement) -> list[str]:
    return table(CASE_HEAD, map(cells, case_rows(results, judgement)))


def _variant_table(results: Results) -> list[str]:
    return table(VARIANT_HEAD, map(cells, variant_rows(results)))


def _verdicts(results: Results, judgement: Judgement, listed: int | None = 0) -> Iterator[str]:
    """Each with its reasons. ``listed``: so many of each kind of what was removed and what remains; None: all."""
    for case, verdict in judged(results, judgement):
        yield from point(f"{label(results, verdict)}: {verdict.status}")
        for text in (*reasons_of(verdict), *(f"Note: {note}" for note in verdict.notes)):
            yield from point(shortened(text), 1)
        if listed != 0 and verdict.status != "invalid":
            same = same_as(results, case, verdict.mode)
            yield from (
                point(f"breaks, recompiles and skips: the same as [{same}]", 1)
                if same
                else _changes(case, verdict.mode, listed)
            )
    if judgement.unexercised:
        yield from point(shortened(f"patched, but run by no case: {', '.join(judgement.unexercised)}"))


def _changes(case: CaseResult, mode: str, listed: int | None) -> Iterator[str]:
    """What was removed and what remains, at most ``listed`` of each."""
    for change in changes(case, mode):
        yield from point(change.title, 1)
        for word in dict.fromkeys(fate.word for fate in change.fates):
            fates = [fate for fate in change.fates if fate.word == word]
            for _, times, where, text in fates[:listed]:
                yield from point(f"{word} {times} {f'{code(where)}: ' if where else ''}{code(shortened(text))}", 2)
            if listed and len(fates) > listed:
                yield from point(f"{word} ... and {len(fates) - listed} more", 2)


def _endings(results: Results, level: str) -> Blocks:
    """The variants without figures, and the last lines of their output."""
    pairs = [(case, variant) for case in results.cases for variant in case.variants if variant.figures is None]
    pairs = [(case, variant) for case, variant in pairs if variant.message or variant.tail]
    yield f"{level} What did not run to its end" if pairs else ""
    for case, variant in pairs:
        yield prose(shortened(f"{case.name}: {ended(variant)}"))
        if variant.tail and variant.status != "skipped":
            yield block("\n".join(variant.tail), "text")


def _facts(results: Results) -> Iterator[str]:
    """Where, with what and on which tree it ran."""
    place, tree = results.environment, results.tree
    cuda = f"CUDA {place.cuda}" if place.cuda else ""
    threads = many(place.threads, "thread") if place.threads else ""
    more = ", ".join(part for part in (cuda, place.platform, threads) if part)
    yield f"torch {place.torch or '?'}, Python {place.python or '?'}"
    yield f"device {place.device or '?'}" + (f" ({more})" if more else "")
    yield f"backend {results.backend}, mode {', '.join(results.modes)}" + (", quick" if results.quick else "")
    commit = tree.commit[:12] if tree.commit else "not in git"
    yield f"tree {commit}{' with uncommitted changes' if tree.dirty else ''}, patch {tree.digest[:12] or '?'}"
    yield f"{results.tool}, {results.started}, {results.seconds:.0f} s"
