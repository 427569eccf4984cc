"""The table as Markdown, and as JSON lines."""

from __future__ import annotations

from patcher.fleet.row import to_json
from patcher.fleet.table import APART, HEAD, MEANING, TIMES, Fleet, cells, count, facts, remarks, time_cells, times
from patcher.report.markdown.blocks import Blocks, block, inline, page, points, prose, sentence, table
from patcher.report.markdown.blocks import cells as inlined


def fleet_markdown(fleet: Fleet) -> str:
    """The whole page."""
    return page(_blocks(fleet))


def _blocks(fleet: Fleet) -> Blocks:
    yield f"# {inline(fleet.title)}"
    yield prose(sentence(count(fleet)))
    yield points(*facts(fleet))
    if fleet.rows:
        yield table(HEAD, (inlined(cells(row)) for row in fleet.rows))
        yield prose(MEANING)
        yield "## What came of each"
        yield points(*(f"{name}: {text}" for name, text in remarks(fleet.rows)))
    places = times(fleet.rows)
    if places:
        yield "## Times"
        yield prose(APART)
    for place, rows in places.items():
        yield f"### {inline(place)}"
        yield table(TIMES, (inlined(time_cells(row)) for row in rows))
    yield block(fleet.command)


def fleet_lines(fleet: Fleet) -> str:
    """A line of JSON for each row."""
    return "".join(to_json(row) + "\n" for row in fleet.rows)
