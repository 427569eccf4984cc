"""What is shown when the mouse rests on a finding: what it says, the rule's page, and what a run has measured there."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence

from patcher.described import markdown
from patcher.diagnose.latest import MeasuredCause
from patcher.results import Reported
from patcher.rule import Rule

_FIXES = {"safe": "safe fix", "unsafe": "unsafe fix", "display-only": "no fix"}


def page(found: Sequence[Reported], causes: Sequence[MeasuredCause], rules: Mapping[str, Rule]) -> str:
    """Markdown for the findings and causes of one line; "" for none."""
    parts = [_measured(causes)] if causes else []
    for one in found:
        parts.append(_finding(one))
        if one.code in rules:
            parts.append(markdown(inspect.cleandoc(type(rules[one.code]).__doc__ or "")))
    return "\n\n---\n\n".join(parts)


def message(found: Reported) -> str:
    """The finding in one line, with what an unsafe fix assumes or why there is none."""
    reached = f" ({found.reached})" if found.reached else ""
    if not found.assumption:
        return f"{found.message}{reached}"
    word = "the unsafe fix assumes" if found.applicability == "unsafe" else "no fix"
    return f"{found.message}{reached}; {word}: {found.assumption}"


def _finding(found: Reported) -> str:
    return f"**{found.code} {found.name}** ({_FIXES[found.applicability]}): {_markdown(message(found))}"


def _measured(causes: Sequence[MeasuredCause]) -> str:
    when = causes[0].when
    lines = [f"**Measured here** by `{_plain(causes[0].command)}`, {when}:", ""]
    lines += [f"- {cause.severity}: {_markdown(cause.title)}. {_markdown(cause.told)}" for cause in causes]
    return "\n".join(lines)


def _plain(text: str) -> str:
    return text.replace("`", "'")


def _markdown(text: str) -> str:
    """Text of ours, in which only backticks mean something."""
    parts = text.split("`")
    return "`".join(part if n % 2 else re.sub(r"([*_<>\[\]\\])", r"\\\1", part) for n, part in enumerate(parts))
