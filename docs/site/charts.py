"""Bars below tables of figures, as HTML that follows the palette of the page; nothing is drawn by a script.

A comment before a table asks for them, and says of which columns:

    <!-- chart: eager ms | compiled before | compiled after -->
    <!-- chart: graphs = original, , unsafe -->         cells like 4 -> 1 -> 1; a figure without a name is left out
    <!-- chart on one scale: recall | precision -->     else each row is as wide as its largest figure
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

_ASKED = re.compile(
    r"^<!-- chart(?P<one> on one scale)?: (?P<columns>.+?) -->\n(?P<between>(?:(?!\|).*\n)*)(?P<table>(?:^\|.*\n)+)",
    re.MULTILINE,
)
_FIGURE = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
_COLOURS = 3


class ChartError(Exception):
    """A chart of what is not there; the message is one line."""


def charted(text: str) -> str:
    """A page with its charts. Raises ``ChartError``."""
    return _ASKED.sub(
        lambda found: found["between"] + _below(found["table"], found["columns"], found["one"] is not None), text
    )


def _below(table: str, asked: str, one_scale: bool) -> str:
    head, _, *rows = [_cells(line) for line in table.splitlines()]
    names, places = [], []
    for column in asked.split("|"):
        title, _, parts = (part.strip() for part in column.partition("="))
        if title not in head:
            raise ChartError(f"there is no column {title!r} beside {head}")
        labels = [part.strip() for part in parts.split(",")] if parts else [title]
        names += [label for label in labels if label]
        places += [(head.index(title), number) for number, label in enumerate(labels) if label]
    if len(names) > _COLOURS:
        raise ChartError(f"{len(names)} bars a row: {names}")
    drawn = [(row[0], [_figure(row[column], number) for column, number in places]) for row in rows]
    drawn = [(name, figures) for name, figures in drawn if name and None not in figures]
    if not drawn:
        raise ChartError(f"no row has figures in {names}")
    most = max(value for _, figures in drawn for value in _values(figures)) if one_scale else None
    told = "one scale" if one_scale else "each row on a scale of its own"
    lines = [f'<figure class="bars" role="img" aria-label="The figures of the table above as bars: {told}">']
    legend = "".join(f'<span class="bar-{number}">{html.escape(name)}</span>' for number, name in enumerate(names))
    lines.append(f"<figcaption>{legend} <small>({told})</small></figcaption>")
    for name, figures in drawn:
        largest = most or max(_values(figures)) or 1.0
        bars = "".join(_bar(number, shown, largest) for number, shown in enumerate(figures) if shown is not None)
        lines.append(f'<div class="row"><div class="name">{html.escape(_plain(name))}</div><div>{bars}</div></div>')
    return table + "\n" + "\n".join([*lines, "</figure>"]) + "\n\n"


def _bar(number: int, shown: str, largest: float) -> str:
    part = max(0.0, _value(shown)) / largest
    return f'<div class="bar bar-{number}"><i style="--part: {part:.3f}"></i><b>{html.escape(shown)}</b></div>'


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def _figure(cell: str, number: int) -> str | None:
    """The figure of a cell, or of its part between arrows; with its per cent."""
    parts = _plain(cell).split("->")
    found = _FIGURE.match(parts[number].strip()) if number < len(parts) else None
    if found is None:
        return None
    return found[0] + " %" * parts[number].strip()[found.end() :].lstrip().startswith("%")


def _values(figures: Sequence[str | None]) -> list[float]:
    return [_value(shown) for shown in figures if shown is not None]


def _value(shown: str) -> float:
    return float(shown.removesuffix(" %").replace(",", ""))


def _plain(cell: str) -> str:
    """Text without the marks of Markdown."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("**", "").replace("`", "").strip()
