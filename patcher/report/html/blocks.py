"""Tables, lists of terms, code and commands: the blocks that all sections are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from patcher.report.html.markup import Child, Markup, element, join
from patcher.report.sections import TITLES

_FIGURE = re.compile(r"([-+]?\d[\d.]*(e[-+]?\d+)?[x%]?|-|nan|inf)( (\[.*\]|\(\w+\)|→ (\d+|-)|ms|s|MB))?")
_TAB, _HANG = 4, 14  # characters
_NARROW, _LONG = 5, ("long", "list")  # columns that a phone has room for; tables with sentences in them
_ADDRESS = re.compile(r"https?://[^\s<>\"']+")


def section(name: str, *children: Child) -> Markup:
    """A part of the report, by its name among ``TITLES``, that the list of contents can point to."""
    heading = element("h2", TITLES[name], id=f"{name}-title")
    return element("section", heading, *children, id=name, aria_labelledby=f"{name}-title")


def article(name: str, title: Child, *children: Child, beside: Child = "", classes: str = "") -> Markup:
    """A part that stands for itself, under its title; ``beside``: what stands next to the title."""
    heading = element("h3", title, id=f"{name}-title")
    header = element("header", heading, beside)
    return element("article", header, *children, id=name, class_=classes or False, aria_labelledby=f"{name}-title")


def table(
    label: str, head: Sequence[str], rows: Iterable[Sequence[Child]], classes: str = "", marks: Sequence[str] = ()
) -> Markup:
    """A table in a box that scrolls by itself; columns of figures stand to the right. ``label``: for who cannot see.

    One that is wider than a phone is a block for each row there. ``marks``: of each row, its classes.
    """
    kept = [[join(cell) for cell in row] for row in rows]
    figures = [bool(kept) and all(_FIGURE.fullmatch(row[i]) for row in kept) for i in range(len(head))]
    columns = element(
        "tr",
        (element("th", name, scope="col", class_="figure" if figures[i] else False) for i, name in enumerate(head)),
    )
    body = (
        element(
            "tr",
            (_cell(i, cell, figures[i], head[i]) for i, cell in enumerate(row)),
            class_=marks[n] if marks else False,
        )
        for n, row in enumerate(kept)
    )
    stacked = "stacked" if len(head) > _NARROW or classes in _LONG else ""
    classes = " ".join(filter(None, (classes, stacked)))
    inside = element("table", element("thead", columns), element("tbody", body), class_=classes or False)
    return element("div", inside, class_="scroll", role="region", tabindex=0, aria_label=label)


def terms(pairs: Iterable[tuple[str, Child]], classes: str = "terms") -> Markup:
    """What belongs to each term; those with nothing are left out."""
    kept = [(term, join(told)) for term, told in pairs]
    rows = (element("div", element("dt", term), element("dd", told)) for term, told in kept if told)
    return element("dl", rows, class_=classes)


def bullets(items: Iterable[Child]) -> Markup:
    """A list, or nothing when there are no items."""
    kept = [element("li", item) for item in items]
    return element("ul", kept) if kept else Markup("")


def listing(lines: Iterable[tuple[int, str]], here: int | None) -> Markup:
    """Numbered source; the line ``here`` is marked."""
    kept = tuple(lines)
    cut = margin(text for _, text in kept)
    told = (
        numbered(number, text[cut:], text[cut:], "line here" if number == here else "line") for number, text in kept
    )
    return element("div", told, class_="listing")


def numbered(number: int, text: str, shown: Child, classes: str = "line") -> Markup:
    """A line of source. ``shown``: ``text`` as it is shown; what does not fit goes on a little further in."""
    plain = text.expandtabs(_TAB)
    hang = min(len(plain) - len(plain.lstrip()) + 2, _HANG)
    return element("code", shown if text else " ", class_=classes, data_n=number, style=f"--hang: {hang}ch")


def margin(texts: Iterable[str]) -> int:
    """How many blanks all lines start with; lines that are empty do not count."""
    starts = {text[: len(text) - len(text.lstrip())] for text in texts if text.strip()}
    if not starts:
        return 0
    first, last = min(starts), max(starts)
    return next((i for i, blank in enumerate(first) if blank != last[i : i + 1]), len(first))


def command(text: str) -> Markup:
    """Something to copy into a terminal, or source as it stands."""
    return element("pre", element("code", text))


def fold(summary: Child, *children: Child, opened: bool = False, classes: str = "") -> Markup:
    """What can be folded away."""
    return element("details", element("summary", summary), *children, open=opened, class_=classes or False)


def link(address: str, text: str) -> Markup:
    """A link, if the address is one of the web; else both as text."""
    if _ADDRESS.fullmatch(address):
        return element("a", text, href=address, rel="noreferrer")
    return join(f"{text} {address}".strip())


def _cell(column: int, told: Markup, figure: bool, name: str) -> Markup:
    if column == 0:
        return element("th", told, scope="row", class_="figure" if figure else False, data_name=name)
    return element("td", told, class_="figure" if figure else False, data_name=name)
