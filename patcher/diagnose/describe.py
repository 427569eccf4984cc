"""Causes as the report tells them: title, place, cost, current code, what to do about it."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from patcher.diagnose.advice import registry_id
from patcher.diagnose.asked_settings import advised
from patcher.diagnose.diagnosis import Cause, Fate, ProposedFix
from patcher.diagnose.events import Event
from patcher.diagnose.groups import Group, Key, parsed, severity, told
from patcher.diagnose.places import Places
from patcher.diagnose.relations import Found
from patcher.rule import Rule

_HEADING = re.compile(r"^([A-Z][\w ]+):$")
_TITLE_CHARACTERS = 90
_LIMIT = (
    "The limit counts every compilation of the function, whatever the guard: each recompilation of it that this report"
    " tells of has a part in it."
)
_FOLLOWS = (
    "Compiled by itself only because of graph breaks. Without them this is a part of a larger graph, and what that is"
    " compiled again for is decided there: fix the breaks first."
)
_GENERATED = (
    "Only with a backend that generates code: counted with the backend eager it is not there. It comes from tracing"
    " backward, from a guard of the backend's own, or from chance."
)
#: Why inductor makes no CUDA graph, and what to do about it.
_SKIPS = (
    (
        r"mutated inputs",
        "Write into a registered buffer, or return the new value, instead of changing an input.",
    ),
    (r"cpu device", "Move this tensor to the GPU once, outside of compiled code."),
    (r"multiple devices", "Keep the model and its inputs on one GPU."),
    (r"dynamic|symbolic", "Compile for fixed sizes (`dynamic=False`, or pad inputs to a few sizes)."),
    (r"", "Take this operator out of the compiled function, or compile without CUDA graphs."),
)
_FAKE_CALL = "TypeError when making fake tensor call"
_REFUSED = re.compile(r"(?P<function>\w+)\(\): argument '(?P<argument>\w+)'.* must be .+, not (?P<given>\w+)")


@dataclass(frozen=True)
class Context:
    """What a cause is described with.

    ``diff``: of the fix that a finding belongs to. ``after``: what remains with the fixes, None
    where that is not known. ``again``: the keys of what a second run showed, None without one. ``launches``: of one
    settled pass. ``verify``: the command that shows what the fixes of rules with these codes do, unsafe ones or not.
    ``generated``: the keys of what there is only when code is generated.
    """

    places: Places
    rules: Mapping[str, Rule]
    diff: Callable[[Found], str]
    after: Mapping[Key, Group] | None
    again: frozenset[Key] | None
    launches: int
    torch: str
    verify: Callable[[Sequence[str], bool], str]
    generated: frozenset[Key] = frozenset()


def described(number: int, group: Group, found: Sequence[Found], context: Context) -> Cause:
    """One cause, with what the rules found there."""
    first, place = group.first, group.place
    shown: dict[str, Any] = {
        "where": "" if group.follows else first.source or first.where,
        "function": "",
        "trigger": "",
        "code": (),
    }
    if place is not None:
        shown["where"] = place.where
        if file := context.places.file(place.path):
            line = file.head(place.line)
            shown = {
                "where": replace(place, line=line).where,
                "function": file.scope(line),
                "trigger": file.lines[line - 1].strip() if line <= len(file.lines) else "",
                "code": file.excerpt(line),
            }
    function = shown.pop("function") or ("" if group.follows else first.function)
    codes = sorted({f.reported.code for f in found if f.reported.applicability != "display-only"})
    fate, later = _fate(group, context), (context.after or {}).get(group.key)
    return Cause(
        number=number,
        category=group.category,
        severity=severity(group, context.launches),
        title=_title(group, function),
        function=function,
        reason=_reason(group),
        impact=group.impact,
        cases=group.cases,
        explanation=first.explanation,
        hints=first.hints,
        advice=() if group.follows or fate == "removed" else advised(group, context.places, context.torch),
        registry=registry_id(first.url),
        reference=first.url,
        fixes=tuple(_proposed(f, context) for f in found),
        verify=context.verify(codes, any(f.reported.applicability == "unsafe" for f in found)),
        steady=_is_steady(group, context),
        fate=fate,
        after=later.impact if later else None,
        note=_note(group, context),
        **shown,
    )


def _is_steady(group: Group, context: Context) -> bool:
    return context.again is None or group.key in context.again


def _fate(group: Group, context: Context) -> Fate:
    if context.after is None or not _is_steady(group, context):
        return "unknown"
    return "remains" if group.key in context.after else "removed"


def _note(group: Group, context: Context) -> str:
    if group.follows:
        return _FOLLOWS
    told = [_LIMIT] if group.impact.limit_hits else []
    if group.category == "CUDA graphs":
        told += [remedy for reason, remedy in _SKIPS if re.search(reason, group.first.reason)][:1]
    if group.key in context.generated and group.category != "CUDA graphs":
        told.append(_GENERATED)
    return " ".join(told)


def titled(group: Group, places: Places) -> str:
    """A cause in a few words, with its place."""
    file = places.file(group.place.path) if group.place else None
    title = _title(group, file.scope(group.place.line) if file and group.place else group.first.function)
    return f"{title} ({group.place.where})" if group.place else title


def paragraphs(rule: Rule, heading: str) -> str:
    """What the rule's docstring says below a heading, without its indentation."""
    lines: list[str] = []
    inside = False
    for line in inspect.cleandoc(type(rule).__doc__ or "").splitlines():
        if found := _HEADING.match(line):
            inside = found[1] == heading
        elif inside:
            lines.append(line)
    return textwrap.dedent("\n".join(lines)).strip()


def _proposed(found: Found, context: Context) -> ProposedFix:
    item, rule = found.reported, context.rules[found.reported.code]
    return ProposedFix(
        code=item.code,
        name=item.name,
        where=f"{context.places.shown(found.path)}:{item.line}",
        message=item.message,
        applicability=item.applicability,
        assumption=item.assumption,
        strategy=item.strategy,
        why=paragraphs(rule, "Why it breaks compilation"),
        safety=paragraphs(rule, "Fix safety"),
        diff=context.diff(found) if item.applicability != "display-only" else "",
    )


def _title(group: Group, function: str) -> str:
    within = f" in {function}" if function else ""
    if group.category == "CUDA graphs":
        return f"CUDA graphs skipped: {_short(group.first.reason)}"
    if not group.guards:
        return f"Graph break: {_short(_cause_of(group.first))}{within}"
    if group.place is None and group.follows:
        count = len({(event.where, event.function) for event in group.events})
        frames = "1 frame" if count == 1 else f"{count} frames"
        return f"Recompilation of {frames} that graph breaks have split off"
    again = "The recompile limit is hit" if group.impact.limit_hits else "Recompilation"
    return f"{again}: {told(group.guards)}{within}"


def _reason(group: Group) -> str:
    """PyTorch's line; of recompiles the different guards, a few of them."""
    reasons = list(dict.fromkeys(event.reason for event in group.events))
    if group.place is None and group.follows:
        reasons = list(dict.fromkeys(f"{e.function} ({e.where}): {parsed(e.reason).told}" for e in group.events))
    shown = "; ".join(reasons[:3])
    elsewhere = group.key[0] == "break" and group.place is not None and group.place.where != group.key[1]
    broke = f" (it breaks at {group.key[1]}, which this line comes to)" if elsewhere else ""
    return shown + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "") + broke


def _cause_of(event: Event) -> str:
    """What breaks, where PyTorch names an exception only: the argument that is refused, else the exception's text."""
    if not event.reason.startswith(_FAKE_CALL):
        return event.reason
    refused = _REFUSED.search(event.context)
    if refused:
        return f"{refused['given']} `{refused['argument']}` in {refused['function']}"
    error, colon, text = event.context.partition(": ")
    return f"{error.split()[0]}: {text}" if colon and error else event.reason


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _TITLE_CHARACTERS else text[: _TITLE_CHARACTERS - 3] + "..."
