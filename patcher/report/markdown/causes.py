"""One section for each cause, and what to do about them in order of severity."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from patcher.diagnose.diagnosis import Cause, Diagnosis, Impact, ProposedFix
from patcher.report.markdown.blocks import (
    NONE,
    Blocks,
    block,
    code,
    decimal,
    inline,
    link,
    paragraphs,
    points,
    prose,
    sentence,
    shortened,
)
from patcher.report.recommending import APPLIES, FATES, steps
from patcher.report.recommending import stays as left
from patcher.words import counts, many

_GUARDED = ("recompilation", "dynamic shape")  # the reason is a guard, hence code


def cause_sections(causes: Sequence[Cause]) -> Blocks:
    """A section for each."""
    told: dict[str, int] = {}
    for cause in causes:
        yield from _cause(cause, told)


def _cause(cause: Cause, told: dict[str, int]) -> Blocks:
    """One section. ``told``: what was told before, such as a diff, and in the section of which cause."""
    yield f"### {cause.number}. [{cause.severity}] {inline(cause.title)}"
    place, reason = ", in ".join(map(code, filter(None, (cause.where, cause.function)))), shortened(cause.reason)
    yield points(
        f"Category: {cause.category}",
        place and f"Location: {place}",
        cause.trigger and f"Trigger: {code(cause.trigger)}",
        f"Reason: {code(reason) if cause.category in _GUARDED else reason or NONE}",
        f"Impact: {impact(cause.impact)}",
        f"Seen in: {', '.join(cause.cases) or NONE}",
        f"With the fixes: {FATES[cause.fate]}{_then(cause)}",
        "" if cause.steady else "Not steady: a second run of the same code did not show it.",
        cause.note and f"Note: {cause.note}",
    )
    if cause.code:
        yield "**Current code**"
        yield block("\n".join(_numbered(cause)), "text")
    for fix in cause.fixes:
        yield from _fix(fix, cause.number, told)
    yield from _in_their_words(cause)
    yield "**Settings that would do it**" if cause.advice else ""
    for item in cause.advice:
        yield block(item.flag, "python")
        yield points(f"What it does: {item.effect}", f"What it costs: {item.cost}")
    if cause.verify:
        yield "**Verification**"
        yield block(cause.verify, "bash")
    if reference := _reference(cause):
        yield f"**Reference**: {reference}"


def impact(cost: Impact) -> str:
    """``24 breaks, 13 recompiles; 247 launches in a pass of 13 calls; 21.5 s of compiling``."""
    parts = [counts(cost)]
    if cost.launches:
        calls = f" in a pass of {many(cost.calls, 'call')}" if cost.calls else ""
        parts.append(many(cost.launches, "launch", "launches") + calls)
    if cost.compile_seconds is not None:
        parts.append(f"about {decimal(cost.compile_seconds)} s of compiling")
    return "; ".join(part for part in parts if part) or NONE


def _then(cause: Cause) -> str:
    """What it costs then, when that is something else than before."""
    if cause.after is None or impact(cause.after) == impact(cause.impact):
        return ""
    return f": {impact(cause.after)}"


def _numbered(cause: Cause) -> Iterator[str]:
    place = cause.where.rpartition(":")[2]
    width = max(len(str(number)) for number, _ in cause.code)
    for number, line in cause.code:
        yield f"{'>' if str(number) == place else ' '} {number:>{width}} | {line}".rstrip()


def _fix(fix: ProposedFix, number: int, told: dict[str, int]) -> Blocks:
    strategy = f", strategy {inline(fix.strategy)}" if fix.strategy else ""
    named = f"{inline(fix.code)} {inline(fix.name)}"
    yield f"**Fix**: {named} ({APPLIES[fix.applicability]}{strategy}) at {code(fix.where)}"
    yield prose(sentence(fix.message))
    if fix.assumption:
        lead = "It assumes" if fix.applicability == "unsafe" else "There is no fix, because"
        yield prose(f"{lead}: {fix.assumption}")
    if fix.diff:
        before = told.setdefault(fix.diff, number)
        yield block(fix.diff, "diff") if before == number else f"The diff is that of cause {before}."
    for title, text in (("Why", fix.why), ("Fix safety", fix.safety)):
        if text.strip():
            before = told.setdefault(text, number)
            yield f"**{title}**" if before == number else f"**{title}**: as for cause {before}."
            yield from map(prose, paragraphs(text) if before == number else ())


def _in_their_words(cause: Cause) -> Blocks:
    """PyTorch's hints matter where we have no fix of our own."""
    hints = () if any(fix.diff for fix in cause.fixes) else cause.hints
    yield "**PyTorch says**" if cause.explanation.strip() or hints else ""
    for paragraph in paragraphs(cause.explanation):
        if re.search(r"^[ \t]", paragraph.lstrip("\n"), re.MULTILINE):
            yield block(textwrap.dedent(paragraph.strip("\n")), "text")
        else:
            yield prose(paragraph)
    yield points(*hints)


def _reference(cause: Cause) -> str:
    page = cause.registry or ("PyTorch" if cause.reference else "")
    parts = [link(f"{page} in PyTorch's graph-break registry" if cause.registry else page, cause.reference)]
    parts += [code(f"fix-compile rules {rule}") for rule in dict.fromkeys(fix.code for fix in cause.fixes)]
    return "; ".join(part for part in parts if part)


def stays(diagnosis: Diagnosis) -> Blocks:
    """What a search has left, and why."""
    if told := points(*map(sentence, left(diagnosis))):
        yield told


def to_do(diagnosis: Diagnosis) -> Blocks:
    """What to do next, the gravest first, with commands."""
    if told := points(*(sentence(text) + (f" {code(how)}" if how else "") for text, how in steps(diagnosis))):
        yield told
