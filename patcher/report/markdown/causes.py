"""One section for each cause, and what to do about them in order of severity."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from patcher.diagnose.diagnosis import Cause, Diagnosis, Impact, ProposedFix
from patcher.report.markdown.blocks import (
    NONE,
    block,
    code,
    decimal,
    inline,
    link,
    many,
    paragraphs,
    point,
    prose,
    sentence,
    shortened,
)
from patcher.report.recommending import APPLIES, FATES, steps
from patcher.report.recommending import stays as left
from patcher.report.sections import TITLES

_GUARDED = ("recompilation", "dynamic shape")  # the reason is a guard, hence code


def cause_sections(causes: Sequence[Cause]) -> Iterator[str]:
    """A section for each."""
    if causes:
        yield f"## {TITLES['causes']}"
    told: dict[str, int] = {}
    for cause in causes:
        yield ""
        yield from _cause(cause, told)


def _cause(cause: Cause, told: dict[str, int]) -> Iterator[str]:
    """One section. ``told``: what was told before, such as a diff, and in the section of which cause."""
    yield f"### {cause.number}. [{cause.severity}] {inline(cause.title)}"
    yield ""
    yield f"- Category: {cause.category}"
    place = ", in ".join(code(part) for part in (cause.where, cause.function) if part)
    if place:
        yield f"- Location: {place}"
    if cause.trigger:
        yield f"- Trigger: {code(cause.trigger)}"
    reason = shortened(cause.reason)
    yield from point(f"Reason: {code(reason) if cause.category in _GUARDED else reason or NONE}")
    yield from point(f"Impact: {impact(cause.impact)}")
    yield from point(f"Seen in: {', '.join(cause.cases) or NONE}")
    yield from point(f"With the fixes: {FATES[cause.fate]}{_then(cause)}")
    if not cause.steady:
        yield from point("Not steady: a second run of the same code did not show it.")
    if cause.note:
        yield from point(f"Note: {cause.note}")
    if cause.code:
        yield ""
        yield "**Current code**"
        yield ""
        yield block("\n".join(_numbered(cause)), "text")
    for fix in cause.fixes:
        yield ""
        yield from _fix(fix, cause.number, told)
    yield from _in_their_words(cause)
    yield from _settings(cause)
    if cause.verify:
        yield ""
        yield "**Verification**"
        yield ""
        yield block(cause.verify, "bash")
    reference = _reference(cause)
    if reference:
        yield ""
        yield f"**Reference**: {reference}"


def impact(cost: Impact) -> str:
    """``24 breaks, 13 recompiles; 247 launches in a pass of 13 calls; 21.5 s of compiling``."""
    events = (
        (cost.breaks, "break"),
        (cost.dropped_frames, "dropped frame"),
        (cost.recompiles, "recompile"),
        (cost.limit_hits, "recompile limit hit"),
        (cost.cudagraph_skips, "CUDA-graph skip"),
    )
    parts = [", ".join(many(number, name) for number, name in events if number)]
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


def _fix(fix: ProposedFix, number: int, told: dict[str, int]) -> Iterator[str]:
    strategy = f", strategy {inline(fix.strategy)}" if fix.strategy else ""
    named = f"{inline(fix.code)} {inline(fix.name)}"
    yield f"**Fix**: {named} ({APPLIES[fix.applicability]}{strategy}) at {code(fix.where)}"
    yield ""
    yield from prose(sentence(fix.message))
    if fix.assumption:
        lead = "It assumes" if fix.applicability == "unsafe" else "There is no fix, because"
        yield ""
        yield from prose(f"{lead}: {fix.assumption}")
    if fix.diff:
        yield ""
        before = told.setdefault(fix.diff, number)
        yield block(fix.diff, "diff") if before == number else f"The diff is that of cause {before}."
    for title, text in (("Why", fix.why), ("Fix safety", fix.safety)):
        if text.strip():
            before = told.setdefault(text, number)
            yield ""
            yield f"**{title}**" if before == number else f"**{title}**: as for cause {before}."
            for paragraph in paragraphs(text) if before == number else ():
                yield ""
                yield from prose(paragraph)


def _in_their_words(cause: Cause) -> Iterator[str]:
    """PyTorch's hints matter where we have no fix of our own."""
    hints = () if any(fix.diff for fix in cause.fixes) else cause.hints
    if not (cause.explanation.strip() or hints):
        return
    yield ""
    yield "**PyTorch says**"
    for paragraph in paragraphs(cause.explanation):
        yield ""
        if re.search(r"^[ \t]", paragraph.lstrip("\n"), re.MULTILINE):
            yield block(textwrap.dedent(paragraph.strip("\n")), "text")
        else:
            yield from prose(paragraph)
    if hints:
        yield ""
    for hint in hints:
        yield from point(hint)


def _settings(cause: Cause) -> Iterator[str]:
    if not cause.advice:
        return
    yield ""
    yield "**Settings that would do it**"
    for item in cause.advice:
        yield ""
        yield block(item.flag, "python")
        yield ""
        yield from point(f"What it does: {item.effect}")
        yield from point(f"What it costs: {item.cost}")


def _reference(cause: Cause) -> str:
    page = cause.registry or ("PyTorch" if cause.reference else "")
    parts = [link(f"{page} in PyTorch's graph-break registry" if cause.registry else page, cause.reference)]
    parts += [code(f"fix-compile rules {rule}") for rule in dict.fromkeys(fix.code for fix in cause.fixes)]
    return "; ".join(part for part in parts if part)


def stays(diagnosis: Diagnosis) -> Iterator[str]:
    """What a search has left, and why."""
    yield from _section("stays", [point(sentence(told)) for told in left(diagnosis)])


def to_do(diagnosis: Diagnosis) -> Iterator[str]:
    """What to do next, the gravest first, with commands."""
    yield from _section(
        "next", [point(sentence(text) + (f" {code(how)}" if how else "")) for text, how in steps(diagnosis)]
    )


def _section(name: str, points: Sequence[Iterable[str]]) -> Iterator[str]:
    if points:
        yield f"## {TITLES[name]}"
        yield ""
    for lines in points:
        yield from lines
