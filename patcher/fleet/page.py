"""The table as one HTML file: filters and charts without a script, and nothing that is fetched."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.fleet.row import ANSWERS, Row
from patcher.fleet.table import (
    APART,
    HEAD,
    MEANING,
    TIMES,
    Fleet,
    cells,
    count,
    facts,
    remarks,
    time_cells,
    times,
    where,
)
from patcher.report.html.blocks import bullets, command, fold, table
from patcher.report.html.charts import Bar, Group, drawing
from patcher.report.html.markup import Child, Markup, document, element, join, prose, style
from patcher.report.html.style import SHEET

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_SHEET = """
.filters { display: flex; flex-wrap: wrap; gap: 0.75rem 2rem; margin: 1rem 0; }
.filters fieldset { border: 0; margin: 0; padding: 0; min-width: 0; }
.filters legend { color: var(--quiet); font-size: 0.8125rem; padding: 0; }
.filters label { display: inline-flex; gap: 0.375rem; align-items: baseline; margin-right: 0.875rem; }
.filters label span { overflow-wrap: anywhere; }
.bars { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 21rem), 1fr)); gap: 1.25rem 2.5rem; }
section { margin-top: 2.25rem; }
"""
_Facet = tuple[str, list[str], list[str]]  # its name, its values, and the value of each row


def fleet_html(fleet: Fleet) -> str:
    """The whole page; to be written as UTF-8."""
    facets = _facets(fleet.rows)
    marks = [" ".join(_mark(f, values.index(of[n])) for f, (_, values, of) in enumerate(facets)) for n in _each(fleet)]
    parts = (
        _section("rows", "All rows", element("p", MEANING), _filters(facets), _rows(fleet.rows, marks)),
        _section("breaks", "Graph breaks", _breaks(fleet.rows, marks)),
        _section("times", "Times", _times(fleet, marks)),
        _section("told", "What came of each", _told(fleet.rows, marks)),
        _section("command", "Command", command(fleet.command)),
    )
    head = element(
        "header",
        element("p", "fix-compile fleet", class_="kind"),
        element("h1", fleet.title),
        element("p", f"{count(fleet)}.", class_="lead"),
        bullets(facts(fleet)),
        class_="top",
    )
    shown = [part for part in parts if part]
    main = element("main", shown, id="report", tabindex=-1)
    body = element("body", element("a", "Skip to the report", href="#report", class_="skip"), head, main)
    return document(element("html", _meta(fleet.title, facets), body, lang="en"))


def _meta(title: str, facets: Sequence[_Facet]) -> Markup:
    hidden = "".join(
        f"body:has(#{_mark(f, v)}:not(:checked)) .{_mark(f, v)} {{ display: none; }}\n"
        for f, (_, values, _) in enumerate(facets)
        for v in range(len(values))
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title}: fleet"),
        style(SHEET + _SHEET + hidden),
    )


def _each(fleet: Fleet) -> range:
    return range(len(fleet.rows))


def _facets(rows: Sequence[Row]) -> list[_Facet]:
    """What rows can be chosen by; what is the same for all of them is no choice."""
    every: list[tuple[str, list[str]]] = [
        ("Answer", [row.answer for row in rows]),
        ("What", [row.do for row in rows]),
        ("Model", [row.model for row in rows]),
        ("Mode", [row.mode or "none" for row in rows]),
        ("Machine", [where(row) or "not measured" for row in rows]),
    ]
    kept: list[_Facet] = [(name, sorted(set(of)), of) for name, of in every]
    return [facet for facet in kept if len(facet[1]) > 1]


def _mark(facet: int, value: int) -> str:
    return f"f{facet}-{value}"


def _filters(facets: Sequence[_Facet]) -> Markup:
    sets = [
        element(
            "fieldset",
            element("legend", name),
            (
                element(
                    "label",
                    element("input", type="checkbox", id=_mark(f, v), checked=True),
                    element("span", f"{value} ({of.count(value)})"),
                )
                for v, value in enumerate(values)
            ),
        )
        for f, (name, values, of) in enumerate(facets)
    ]
    return element("div", sets, class_="filters") if sets else Markup("")


def _section(name: str, title: str, *children: Child) -> Markup:
    kept = [join(child) for child in children]
    if not any(kept):
        return Markup("")
    return element("section", element("h2", title, id=f"{name}-title"), kept, id=name, aria_labelledby=f"{name}-title")


def _rows(rows: Sequence[Row], marks: Sequence[str]) -> Markup:
    shown = ([_cell(i, cell) for i, cell in enumerate(cells(row))] for row in rows)
    return table("All rows", HEAD, shown, "dense", marks) if rows else Markup("")


def _cell(column: int, text: str) -> Markup:
    if HEAD[column] == "answer" and text != ANSWERS[0]:
        return element("strong", text, class_="bad")
    return join(text.replace(" -> ", " → ") if column else text)


def _breaks(rows: Sequence[Row], marks: Sequence[str]) -> Markup:
    drawn = []
    for number, row in enumerate(rows):
        before, after = row.figures.get("breaks_before"), row.figures.get("breaks_after")
        if before is not None and after is not None and before + after > 0:
            bars = (Bar("before", "before", before, f"{before:.0f}"), Bar("after", "after", after, f"{after:.0f}"))
            drawn.append(_bars(f"breaks-{number}", "Graph breaks", row, bars, marks[number]))
    return element("div", drawn, class_="bars") if drawn else Markup("")


def _times(fleet: Fleet, marks: Sequence[str]) -> Markup:
    """By machine; each row has its own scale, so that no bar is read against one of another row."""
    parts: list[Markup] = []
    numbers = {id(row): number for number, row in enumerate(fleet.rows)}
    for place, rows in times(fleet.rows).items():
        own = [marks[numbers[id(row)]] for row in rows]
        listed = table(f"Times on {place}", TIMES, map(time_cells, rows), "dense", own)
        drawn = []
        for row, mark in zip(rows, own, strict=True):
            names = (("eager", "eager", "eager_ms"), ("before", "before", "before_ms"), ("after", "after", "after_ms"))
            bars = tuple(
                Bar(name, kind, row.figures[key], f"{row.figures[key]:.3g} ms")
                for name, kind, key in names
                if key in row.figures
            )
            drawn.append(_bars(f"times-{numbers[id(row)]}", "Warm time", row, bars, mark))
        parts += [element("h3", place), listed, fold("Bars", element("div", drawn, class_="bars"))]
    return join(element("p", APART), parts) if parts else Markup("")


def _bars(name: str, title: str, row: Row, bars: Sequence[Bar], mark: str) -> Markup:
    group = Group(row.name, "", tuple(bars), max(bar.value for bar in bars))
    return element("figure", drawing(name, title, [group]), class_=mark or False)


def _told(rows: Sequence[Row], marks: Sequence[str]) -> Markup:
    items = (
        element("li", element("strong", name), ": ", prose(text), class_=mark or False)
        for (name, text), mark in zip(remarks(rows), marks, strict=True)
    )
    return element("ul", items) if rows else Markup("")
