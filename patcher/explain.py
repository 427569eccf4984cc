"""The list of rules, and one rule explained."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence

from patcher.rule import Example, Rule

_WIDTH = 80
_HEADING = re.compile(r"^(\w[^\n]*:)$|^(  (?:before|after))$|^(Example: .*)$", re.MULTILINE)


def coloured(told: str) -> str:
    """An explanation for a terminal: its first line and headings bold."""
    head, newline, rest = told.partition("\n")
    return f"\x1b[1m{head}\x1b[0m{newline}" + _HEADING.sub(lambda m: f"\x1b[1;36m{m[0]}\x1b[0m", rest)


def listing(rules: Sequence[Rule], strategies: Sequence[tuple[str, ...]], origins: Mapping[str, str]) -> str:
    """One line per rule: code, name, what it is about; ``strategies`` go with ``rules`` and may be empty.

    ``origins``: the package that a rule comes from, by its code; none for a rule of this project.
    """
    width = max((len(rule.name) for rule in rules), default=0)
    lines = []
    for rule, names in zip(rules, strategies, strict=True):
        head = f"{rule.code}  {rule.name:{width}}  "
        told = textwrap.wrap(_title(rule), max(_WIDTH - len(head), 20)) or [""]
        lines.append(f"{head}{told[0]}".rstrip() + "\n")
        lines += [f"{'':{len(head)}}{more}\n" for more in told[1:]]
        if rule.code in origins:
            lines.append(f"{'':{len(head)}}from {origins[rule.code]}\n")
        if names:
            told = textwrap.wrap(
                f"strategies: {', '.join(names)}",
                max(_WIDTH - len(head), 20),
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
            lines += [f"{'':{len(head)}}{more}\n" for more in told]
    return "".join(lines) or "There are no rules.\n"


def explanation(
    rule: Rule, key: str, strategies: tuple[str, ...], measured: str = "", origin: str = "", page: str = ""
) -> str:
    """The rule's documentation and its first examples, before and after; ``measured``: what selftest has shown.

    ``origin``: the package that it comes from; "" for a rule of this project. ``page``: where its page is.
    """
    parts = [f"{rule.code} {rule.name}", _fitted(inspect.cleandoc(type(rule).__doc__ or ""))]
    if strategies:
        parts.append(_fitted(f"Strategies: --strategy {key}=NAME, where NAME is {', '.join(strategies)}."))
    if rule.fixed_in is not None:
        parts.append("PyTorch {}.{} and later have no trouble with this; see --target-torch.".format(*rule.fixed_in))
    if rule.switch:
        switched = f"{rule.switch} = true in [tool.fix-compile.fusions]"
        parts.append(_fitted(f"Off unless it is selected, or switched on: {switched}."))
    costs = f"Costs: {', '.join(rule.costs)}. " if rule.costs else ""
    parts.append(f"{costs}{f'It comes from {origin}.' if origin else ''}".strip())
    if page and not origin:
        parts.append(f"Its page: {page}")
    if measured:
        parts.append(f"{measured[:1].upper()}{measured[1:]}.")
    shown = [example for example in rule.invalid if example.after is not None][:2]
    return "\n\n".join([*filter(None, parts), *(_example(example) for example in shown)]) + "\n"


def _fitted(doc: str) -> str:
    """``doc`` with its paragraphs, and the items of its lists, filled to the width anew."""
    filled: list[str] = []
    paragraph: list[str] = []

    def end() -> None:
        if paragraph:
            indent = " " * (len(paragraph[0]) - len(paragraph[0].lstrip()))
            hanging = indent + "  " * paragraph[0].lstrip().startswith("- ")
            words = " ".join(line.strip() for line in paragraph)
            filled.extend(
                textwrap.wrap(
                    words,
                    _WIDTH,
                    initial_indent=indent,
                    subsequent_indent=hanging,
                    break_on_hyphens=False,
                    break_long_words=False,
                )
            )
            paragraph.clear()

    for line in doc.splitlines():
        if not line.strip() or line.lstrip().startswith("- ") or (paragraph and paragraph[-1].endswith(":")):
            end()
        if line.strip():
            paragraph.append(line)
        else:
            filled.append("")
    end()
    return "\n".join(filled)


def _title(rule: Rule) -> str:
    return inspect.cleandoc(type(rule).__doc__ or "").partition("\n")[0]


def _example(example: Example) -> str:
    note = " (with --unsafe)" if example.unsafe else ""
    chosen = "".join(f" --strategy {key}={name}" for key, name in example.strategies.items())
    before, after = (
        textwrap.indent(textwrap.dedent(code).strip("\n"), "    ") for code in (example.before, example.after or "")
    )
    return f"Example: {example.title}{note}{chosen}\n\n  before\n\n{before}\n\n  after\n\n{after}"
