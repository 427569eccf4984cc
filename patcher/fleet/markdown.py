"""The table as Markdown, and as JSON lines."""

from __future__ import annotations

from patcher.fleet.row import to_json
from patcher.fleet.table import APART, HEAD, MEANING, TIMES, Fleet, cells, count, facts, remarks, time_cells, times
from patcher.report.markdown.blocks import block, inline, point, prose, sentence, table
from patcher.report.markdown.blocks import cells as inlined


def fleet_markdown(fleet: Fleet) -> str:
    """The whole page."""
    lines = [f"# {inline(fleet.title)}", "", *prose(sentence(count(fleet))), ""]
    lines += [line for fact in facts(fleet) for line in point(fact)]
    if fleet.rows:
        lines += ["", *table(HEAD, (inlined(cells(row)) for row in fleet.rows)), "", *prose(MEANING)]
    told = remarks(fleet.rows)
    if told:
        lines += ["", "## What came of each", ""]
        lines += [line for name, text in told for line in point(f"{name}: {text}")]
    for number, (place, rows) in enumerate(times(fleet.rows).items()):
        lines += ["", "## Times", "", *prose(APART)] if number == 0 else []
        lines += ["", f"### {inline(place)}", "", *table(TIMES, (inlined(time_cells(row)) for row in rows))]
    return "\n".join([*lines, "", block(fleet.command), ""])


def fleet_lines(fleet: Fleet) -> str:
    """A line of JSON for each row."""
    return "".join(to_json(row) + "\n" for row in fleet.rows)
