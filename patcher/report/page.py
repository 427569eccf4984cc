"""A Markdown report of ours as one HTML file: nothing is fetched, no script runs, all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from patcher.report.fitted import CELL, fenced, joined, kind

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SHEET = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_INLINE = re.compile(
    r"\\(?P<char>[\\`*<|$~\[&_+#>=.)-])"
    r"|(?<!`)(?P<fence>`+)(?!`)(?P<code>.+?)(?<!`)(?P=fence)(?!`)"
    r"|\[(?P<text>(?:\\.|[^\]\\])+)\]\((?P<url>https?://[^\s()]+)\)"
    r"|\*\*(?P<strong>.+?)\*\*"
)
_FIGURE = re.compile(r"([-+]?\d[\d.]*(e[-+]?\d+)?[x%]?|-|nan|inf)( (\[.*\]|\(\w+\)|-> (\d+|-)|ms|s|MB))?")
_HEADING = re.compile(r"(#+) (.*)")


def page(markdown: str, title: str) -> str:
    """The whole file; to be written as UTF-8. ``markdown``: as ``patcher.report.markdown.blocks`` writes it."""
    lines = markdown.splitlines()
    names = [found[2] for line in lines if (found := _HEADING.match(line)) and found[1] == "##"]
    links = "".join(f'<li><a href="#{_id(name)}">{_inline(name)}</a></li>' for name in names)
    body = "\n".join(_blocks(lines))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_SHEET}</style></head>\n"
        '<body><a href="#report" class="skip">Skip to the report</a>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>'
        f'<main id="report" tabindex="-1">\n{body}\n</main></body></html>\n'
    )


def _id(heading: str) -> str:
    return "".join(char if char.isalnum() else "-" for char in heading.lower())


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    for language, inside in fenced(lines):
        if language:
            yield _code(inside, language)
            continue
        for name, some in groupby(joined(inside), key=_kind):
            each = list(some)
            if name == "table":
                yield _table(each)
            elif name == "item":
                yield _list(each)
            else:
                yield from (_heading(line) if name == "heading" else f"<p>{_inline(line)}</p>" for line in each if line)


def _kind(line: str) -> str:
    return "item" if line.lstrip().startswith("- ") else kind(line)


def _heading(line: str) -> str:
    marks, _, text = line.partition(" ")
    named = f' id="{_id(text)}"' if marks == "##" else ""
    return f"<h{len(marks)}{named}>{_inline(text)}</h{len(marks)}>"


def _code(lines: Sequence[str], language: str) -> str:
    """A line of a diff is marked as what it does; in other code none is."""
    marks = {"+": "new", "-": "old", "@": "hunk"} if language == "diff" else {}
    told = (f'<span class="{marks[x[0]]}">{escape(x)}</span>' if x[:1] in marks and x else escape(x) for x in lines)
    return f"<pre><code>{chr(10).join(told)}</code></pre>"


def _list(lines: Sequence[str]) -> str:
    """Items that may have items below them, set in by two blanks."""
    parts, depth = ["<ul>"], 0
    for line in lines:
        text = line.lstrip()
        own = (len(line) - len(text)) // 2
        parts += ["<ul>"] * (own - depth) + ["</li></ul>"] * (depth - own)
        parts += ["</li>"] if own <= depth and len(parts) > 1 else []
        parts.append(f"<li>{_inline(text[2:])}")
        depth = own
    return "".join([*parts, "</li></ul>" * (depth + 1)])


def _table(lines: Sequence[str]) -> str:
    """A table in a box that scrolls by itself; columns of figures stand to the right."""
    head, _, *rows = [[cell.strip() for cell in CELL.split(line)[1:-1]] for line in lines]
    right = [bool(rows) and all(_FIGURE.fullmatch(row[i]) for row in rows) for i in range(len(head))]
    classes = [' class="figure"' if figure else "" for figure in right]
    told = "".join(f'<th scope="col"{c}>{_inline(x)}</th>' for x, c in zip(head, classes, strict=True))
    body = []
    for first, *rest in rows:
        cells = "".join(f"<td{c}>{_inline(x)}</td>" for x, c in zip(rest, classes[1:], strict=True))
        body.append(f'<tr><th scope="row"{classes[0]}>{_inline(first)}</th>{cells}</tr>')
    inside = f"<table><thead><tr>{told}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f'<div class="scroll" role="region" tabindex="0" aria-label="Table: {escape(head[0])}">{inside}</div>'


def _inline(text: str) -> str:
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts += [escape(text[end : found.start()]), _span(found)]
        end = found.end()
    return "".join([*parts, escape(text[end:])])


def _span(found: re.Match[str]) -> str:
    if found["char"]:
        return escape(found["char"])
    if found["code"]:
        code = found["code"].replace("\\|", "|")  # as cells of tables have it
        padded = len(found["fence"]) > 1 and code[:1] == code[-1:] == " "
        return f"<code>{escape(code[1:-1] if padded else code)}</code>"
    if found["url"]:
        return f'<a href="{escape(found["url"])}" rel="noreferrer">{_inline(found["text"])}</a>'
    return f"<strong>{_inline(found['strong'])}</strong>"
