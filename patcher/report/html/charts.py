"""Bars of launches and warm times as inline SVG. Lengths are shares of the width, so that text keeps its size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from patcher.harness.compare import ENDED
from patcher.harness.measured import Measurement, Results
from patcher.report.html.markup import Markup, element, join

_GUTTER, _BAR, _STEP, _NAME, _GAP = 58, 12, 19, 24, 12  # pixels
_LONGEST = 58  # percent of the width; the figure stands behind the bar
_SHORTEST_BAR = 0.4  # percent: about a pixel on a phone, so that little is not taken for nothing
_LABEL, _SHORTEST = 36, 12  # characters of a label, and of the name of a case in it

_Entry = tuple[str, str, Measurement]  # what its bar is called, its kind


class Bar(NamedTuple):
    """One value. ``kind``: "eager", "before" or "after", for its colour.

    ``low``, ``high``: the quartiles, where there are some.
    """

    name: str
    kind: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None


class Group(NamedTuple):
    """A case in one mode, "" where there is only one; ``scale``: the largest value of the case in any mode."""

    name: str
    mode: str
    bars: tuple[Bar, ...]
    scale: float


def charts(results: Results) -> Markup:
    """Two pictures, of launches and of warm times; nothing where nothing was measured."""
    drawn = (
        _chart("launches", "Launches", "Compiled graphs that ran in one settled pass.", _groups(results, _launches)),
        _chart(
            "times", "Warm time", "Median of one warm pass; the line spans the quartiles.", _groups(results, _times)
        ),
    )
    shown = [chart for chart in drawn if chart]
    return element("div", shown, class_="charts") if shown else Markup("")


def _groups(results: Results, bars: Callable[[Sequence[_Entry]], Iterable[Bar]]) -> list[Group]:
    patched = any(v.tree == "patched" and v.status != "skipped" for case in results.cases for v in case.variants)
    groups = []
    for case in results.cases:
        own = []
        for mode in results.modes:
            variants = (
                ("eager", "eager", case.variant("original", "eager")),
                ("before" if patched else "compiled", "before", case.variant("original", "compiled", mode)),
                ("after", "after", case.variant("patched", "compiled", mode)),
            )
            known = [entry for entry in variants if patched or entry[2].tree == "original"]
            own.append(
                (
                    f" [{mode}]" if len(results.modes) > 1 else "",
                    tuple(bars(known)) if any(entry[2].figures for entry in known) else (),
                )
            )
        values = [max(bar.value, bar.high or 0) for _, shown in own for bar in shown]
        finite = [value for value in values if math.isfinite(value)]
        groups += [Group(case.name, mode, shown, max(finite, default=0)) for mode, shown in own if shown]
    return groups


def _launches(known: Sequence[_Entry]) -> Iterable[Bar]:
    for name, kind, variant in known:
        if kind != "eager":
            counted = variant.figures and str(variant.figures.launches)
            yield Bar(name, kind, variant.figures.launches if variant.figures else 0, counted or _ended(variant))


def _times(known: Sequence[_Entry]) -> Iterable[Bar]:
    for name, kind, variant in known:
        warm = variant.figures.warm if variant.figures else None
        if warm:
            yield Bar(name, kind, warm.median_ms, f"{_short(warm.median_ms)} ms", warm.low_ms, warm.high_ms)
        else:
            yield Bar(name, kind, 0, _ended(variant))


def _ended(variant: Measurement) -> str:
    return ENDED.get(variant.status, "not measured")


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _chart(name: str, title: str, meaning: str, groups: list[Group]) -> Markup:
    if not groups:
        return Markup("")
    caption = element("figcaption", element("h3", title), element("p", f"{meaning} Each case has its own scale."))
    return element("figure", caption, drawing(f"chart-{name}", title, groups))


def drawing(name: str, title: str, groups: Sequence[Group]) -> Markup:
    """The bars of some groups, one below the other; ``name`` is for the ids in it."""
    y, drawn = 0, []
    for group in groups:
        drawn.append(element("text", _cut(group), x=0, y=y + 15, class_="name"))
        y += _NAME
        for bar in group.bars:
            drawn.append(_drawn(bar, y, group.scale))
            y += _STEP
        y += _GAP
    told = "; ".join(f"{g.name}{g.mode}: {', '.join(f'{bar.name} {bar.text}' for bar in g.bars)}" for g in groups)
    ids = {"title": name, "desc": f"{name}-figures"}
    return element(
        "svg",
        element("title", title, id=ids["title"]),
        element("desc", told, id=ids["desc"]),
        drawn,
        role="img",
        width="100%",
        height=y - _GAP,
        aria_labelledby=ids["title"],
        aria_describedby=ids["desc"],
    )


def _cut(group: Group) -> str:
    """Short enough for a phone; the whole name is in the description and in the table."""
    room = max(_LABEL - len(group.mode), _SHORTEST)
    name = group.name if len(group.name) <= room else group.name[: room - 3] + "..."
    return name + group.mode


def _drawn(bar: Bar, y: int, scale: float) -> Markup:
    def along(value: float) -> float:
        share = value / scale if scale > 0 and math.isfinite(value) else 0
        return round(max(_LONGEST * min(share, 1), _SHORTEST_BAR if share > 0 else 0), 2)

    middle, end = y + _BAR / 2, along(bar.value)
    parts = [
        element("text", bar.name, x=0, y=y + 10),
        element("rect", x=0, y=y, width=f"{end}%", height=_BAR, class_=bar.kind, transform=f"translate({_GUTTER} 0)"),
    ]
    if bar.low is not None and bar.high is not None:
        ends = {"x1": f"{along(bar.low)}%", "x2": f"{along(bar.high)}%"}
        turned = f"translate({_GUTTER} 0)"
        parts.append(element("line", **ends, y1=f"{middle}", y2=f"{middle}", class_="quartiles", transform=turned))
        end = max(end, along(bar.high))
    parts.append(element("text", bar.text, x=f"{end}%", y=y + 10, dx=_GUTTER + 6, class_="value"))
    return join(parts)
