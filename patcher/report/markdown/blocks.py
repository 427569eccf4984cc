"""Markdown as GitHub reads it, of any text: paragraphs, code, tables that are also aligned in a terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

WIDTH = 100  # of prose
LONGEST = 300  # of what others have written, such as a guard
NONE = "-"
Blocks = Iterator[str | Sequence[str]]  # of a page

_WIDEST_CELL = 48  # a longer one is not worth aligning the others to
_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_ACTIVE = re.compile(r"[\\`*<|$]|~(?=~)|\[(?=[^\]]*\]\()|&(?=#?\w+;)|__|(?<![\w`])_(?=\w)|(?<=\w)_(?![\w`])")
_STARTS_A_BLOCK = re.compile(r"([+#>=~]|-(?!>)|\d+(?=[.)](?:\s|$)))")
_KEPT = "\N{NO-BREAK SPACE}"  # stands for the spaces of inline code while lines are filled


def prose(text: str, first: str = "", rest: str = "") -> list[str]:
    """A paragraph in lines; inline code in backticks stays. ``first``, ``rest``: what the lines begin with."""
    parts = (part.replace(" ", _KEPT) if code else escaped(part) for part, code in _spans(_flat(text)))
    filling = textwrap.TextWrapper(WIDTH, break_long_words=False, break_on_hyphens=False)
    filling.initial_indent, filling.subsequent_indent = first, rest
    lines = filling.wrap("".join(parts))
    heads = (first, *[rest] * len(lines))
    return [head + _tamed(line[len(head) :]).replace(_KEPT, " ") for head, line in zip(heads, lines, strict=False)]


def point(text: str, depth: int = 0) -> list[str]:
    """An item of a list."""
    return prose(text, "  " * depth + "- ", "  " * depth + "  ")


def points(*texts: str) -> list[str]:
    """A list; a text that is empty is left out."""
    return [line for text in texts if text for line in point(text)]


def page(blocks: Iterable[str | Sequence[str]]) -> str:
    """Blocks, each a text or its lines, with an empty line between; one that is empty is left out."""
    texts = (block if isinstance(block, str) else "\n".join(block) for block in blocks)
    return "\n\n".join(text for text in texts if text) + "\n"


def inline(text: str) -> str:
    """Text on one line, such as a heading or a cell; inline code in backticks stays."""
    return "".join(part if code else escaped(part) for part, code in _spans(_flat(text)))


def code(text: str) -> str:
    """Inline code."""
    flat = _flat(text)
    fence = _fence(flat, 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}" if flat else ""


def block(text: str, language: str = "") -> str:
    """Fenced code; the fence is longer than any in it."""
    lines = ["".join(c if c.isprintable() or c == "\t" else " " for c in line) for line in text.split("\n")]
    while lines and not lines[-1].strip():
        lines.pop()
    fence = _fence(text, 3)
    return "\n".join([fence + language, *lines, fence])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table of cells that are Markdown already; bars in them are escaped, inside inline code too."""
    cells = [[cell.replace("\\|", "|").replace("|", "\\|") for cell in row] for row in (head, *rows)]
    widths = [max([3, *(len(row[i]) for row in cells if len(row[i]) <= _WIDEST_CELL)]) for i in range(len(head))]
    lines = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in cells]
    return [lines[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *lines[1:]]


def escaped(text: str) -> str:
    """Without what GitHub would take for markup."""
    return _ACTIVE.sub(lambda found: "".join("\\" + char for char in found[0]), text)


def link(text: str, url: str) -> str:
    """A link, where the address is one of the web; else the text alone."""
    plain = re.fullmatch(r"https?://[^\s<>()\[\]`\\\"']+", url)
    return f"[{escaped(_flat(text))}]({url})" if plain else inline(text)


def _flat(text: str) -> str:
    """On one line, without what would move a terminal's cursor."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _spans(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a text, and whether each is inline code."""
    end = 0
    for found in _SPAN.finditer(text):
        yield text[end : found.start()], False
        yield found[0], True
        end = found.end()
    yield text[end:], False


def _tamed(line: str) -> str:
    """A line that goes on with a sentence must not begin a list, a heading or a quotation."""
    found = _STARTS_A_BLOCK.match(line)
    if not found:
        return line
    return line[: found.end()] + "\\" + line[found.end() :] if found[1].isdigit() else "\\" + line


def _fence(text: str, least: int) -> str:
    """More backticks than there are in a row anywhere."""
    return "`" * max([least, *(len(run) + 1 for run in re.findall("`+", text))])


def cells(row: Iterable[str]) -> tuple[str, ...]:
    """A row of a table."""
    return tuple(inline(cell) for cell in row)


def shortened(text: str) -> str:
    """What others have written, cut where it goes on for long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 3] + "..."


def sentence(text: str) -> str:
    """With a capital, where it begins with a plain word, and a full stop."""
    flat = " ".join(text.split())
    word = flat.partition(" ")[0]
    start = flat[:1].upper() + flat[1:] if word.isalpha() and word.islower() else flat
    return start if not start or start[-1] in ".!?:" else start + "."


def paragraphs(text: str) -> Iterator[str]:
    """Those of a text, which blank lines part."""
    return (paragraph for paragraph in text.split("\n\n") if paragraph.strip())


def decimal(value: float | None) -> str:
    """With three digits or so; a dash for what is not known."""
    if value is None:
        return NONE
    size = abs(value)
    return f"{value:.{0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 or not size else 3}f}"
