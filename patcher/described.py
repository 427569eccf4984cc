"""A rule as reports describe it, made of its docstring and its first example."""

from __future__ import annotations

import inspect
import re
import textwrap

from patcher.results import RuleText
from patcher.rule import Rule

_HEADING = re.compile(r"^(\w[^\n]*):$")
_URL = re.compile(r"https?://[^\s`)>\]]+[^\s`)>\].,;]")


def described(rule: Rule) -> RuleText:
    """The rule's name, what it is about in one line, and its documentation as plain text and as Markdown."""
    doc = inspect.cleandoc(type(rule).__doc__ or rule.name)
    title = " ".join(doc.partition("\n\n")[0].replace("``", "`").split())
    url = _URL.search(doc)
    shown = next((example for example in rule.invalid if example.after is not None), None)
    parts = [markdown(doc)]
    if shown is not None and shown.after is not None:
        before, after = (textwrap.dedent(code).strip("\n") for code in (shown.before, shown.after))
        parts.append(f"**Example: {shown.title}**\n\n```python\n{before}\n```\n\nbecomes\n\n```python\n{after}\n```")
    return RuleText(
        rule.code, rule.name, title, doc.replace("``", "`"), "\n\n".join(parts), url[0] if url else "", rule.costs
    )


def markdown(doc: str) -> str:
    """The docstring with its headings bold, and what stands below them in the place where they begin."""
    lines = []
    for line in doc.replace("``", "`").splitlines():
        heading = _HEADING.match(line)
        lines.append(f"**{heading[1]}**\n" if heading else line.removeprefix("    "))
    return "\n".join(lines)
