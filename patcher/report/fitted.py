"""A Markdown report of ours as it is printed on a terminal: no line is longer than the terminal is wide.

Tables that do not fit become a block for each row; paragraphs, headings and code go on below. Nothing is left out but
markup and cells that hold a dash.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

WIDTH = 80

_FENCE = re.compile(r"(`{3,})(\w*)")
_ITEM = re.compile(r" *(?:- |\d+[.)] )?")
_ESCAPE = re.compile(r"\\([\\`*<|$~\[&_+#>=.)-])")
CELL = re.compile(r"(?<!\\)\|")
_SPAN = re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)")
_NOTHING = ("", "-")
_ROOM = WIDTH - 4  # of a line of code
_GOES_ON, _MARKS = " \\", "+- "
_LONGEST_NAME = 24


def fitted(text: str) -> str:
    """``text``, Markdown as `diagnosis_markdown` writes it, in lines of at most `WIDTH` characters."""
    return "".join(line.rstrip() + "\n" for line in _lines(text.splitlines()))


def _lines(lines: Sequence[str]) -> Iterator[str]:
    for fence, inside in fenced(lines):
        if fence:
            yield from _code(inside, fence)
            continue
        for name, some in groupby(joined(inside), key=kind):
            if name == "table":
                yield from _table(list(some))
            else:
                for line in some:
                    yield from _heading(line) if name == "heading" else _wrapped(_plain(line), _indent(line))


def fenced(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """The lines in parts: "" with those outside of fences, a fence's language (or "text") with those inside."""
    outside: list[str] = []
    rest = iter(lines)
    for line in rest:
        opening = _FENCE.match(line)
        if opening is None:
            outside.append(line)
            continue
        yield "", outside
        outside, inside = [], []
        for code in rest:
            if code == opening[1]:
                break
            inside.append(code)
        yield opening[2] or "text", inside
    yield "", outside


def joined(lines: Sequence[str]) -> Iterator[str]:
    """Paragraphs and items of lists on one line each; the others as they are."""
    kept = ""
    for line in lines:
        goes_on = kept and line and kind(line) == kind(kept) == "prose" and not _begins(line)
        if goes_on:
            kept = f"{kept} {line.strip()}"
            continue
        if kept:
            yield kept
        kept = line
        if not line:
            yield line
    if kept:
        yield kept


def _begins(line: str) -> bool:
    return line.lstrip().startswith("- ")


def kind(line: str) -> str:
    """What a line is of: a table, a heading, prose."""
    return "table" if line.startswith("|") else "heading" if line.startswith("#") else "prose"


def _indent(line: str) -> str:
    found = _ITEM.match(line)
    return " " * len(found[0]) if found else ""


def _wrapped(text: str, indent: str) -> list[str]:
    if len(text) <= WIDTH:
        return [text]
    start = len(text) - len(text.lstrip())
    return textwrap.wrap(
        text.lstrip(), WIDTH, initial_indent=" " * start, subsequent_indent=indent, break_on_hyphens=False
    )


def _heading(line: str) -> list[str]:
    marks, _, title = line.partition(" ")
    return _wrapped(f"{marks} {_plain(title)}", " " * (len(marks) + 1))


def _code(lines: Sequence[str], language: str) -> Iterator[str]:
    """Code without its fence, set in; a command goes on behind a backslash, so that it can be copied."""
    for line in lines:
        whole = line.expandtabs(4)
        mark = whole[:1] if language == "diff" and whole[:1] in _MARKS else ""
        start = mark + " " * min(len(whole) - len(mark) - len(whole[len(mark) :].lstrip()), _ROOM // 2) + "    "
        while len(whole) > _ROOM:
            cut = _end_of_words(whole) if language == "bash" else _end_of_line(whole)
            if not cut:
                break
            yield f"    {whole[:cut]}{_GOES_ON if language == 'bash' else ''}"
            whole = start + whole[cut:].lstrip()
        yield f"    {whole}" if whole else ""


def _end_of_words(command: str) -> int:
    """Where a command can be parted, or 0."""
    begins = len(command) - len(command.lstrip())
    parts = (i for i in range(_ROOM - len(_GOES_ON), begins, -1) if command[i] == " ")
    return next((i for i in parts if not any(command[:i].count(quote) % 2 for quote in "'\"")), 0)


def _end_of_line(code: str) -> int:
    """Where a line of source is parted: at a blank, where there is one near its end."""
    blank = code.rfind(" ", _ROOM * 2 // 3, _ROOM)
    return blank if blank > 0 and code[:blank].strip() else _ROOM


def _table(lines: Sequence[str]) -> Iterator[str]:
    """As it is where it fits; else a block for each row, with what its cells are called."""
    rows = [[_plain(cell.strip()) for cell in CELL.split(line)[1:-1]] for line in lines]
    head, rows = rows[0], rows[2:]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    if sum(widths) + 2 * (len(widths) - 1) <= WIDTH:
        lined = [head, ["-" * width for width in widths], *rows]
        yield from ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in lined)
        return
    name_width = min(max(map(len, head[1:])), _LONGEST_NAME)
    first = ""
    for number, row in enumerate(rows):
        first = row[0] or first  # a cell that would say the same again is empty
        if number:
            yield ""
        yield from _wrapped(f"{head[0]} {first}", "  ")
        for name, cell in zip(head[1:], row[1:], strict=True):
            if cell not in _NOTHING:
                yield from _wrapped(f"  {name:<{name_width}}  {cell}", " " * (name_width + 4))


def _plain(text: str) -> str:
    """Without what only Markdown needs; what stands in inline code is as it was, with its backticks."""
    parts, end = [], 0
    for found in _SPAN.finditer(text):
        parts += [_ESCAPE.sub(r"\1", text[end : found.start()]), found[0].replace("\\|", "|")]
        end = found.end()
    return "".join([*parts, _ESCAPE.sub(r"\1", text[end:])]).replace("**", "")
