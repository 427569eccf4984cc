"""What all formats of the table have in common: its columns, the machines, the words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from patcher.fleet.row import ANSWERS, Row, to_json
from patcher.report.markdown.blocks import NONE, Blocks, block, decimal, inline, page, points, prose, sentence, table
from patcher.report.markdown.blocks import cells as inlined
from patcher.words import many


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


HEAD = ("model", "case", "mode", "what", "answer", "fixes", "breaks", "recompiles", "launches", "speedup", "MAE")
TIMES = ("model", "case", "mode", "what", "eager ms", "compiled before", "compiled after", "speedup")
MEANING = (
    "fixes: findings with a safe fix, with an unsafe one, with none. breaks, recompiles, launches: of the original"
    " compiled -> patched compiled. speedup: compiled before / compiled after, measured one after the other on one"
    " machine; (noise): the quartile ranges overlap. MAE: outputs of patched compiled against original eager."
)
APART = "Milliseconds compare only within one machine, so each machine has a table of its own."


@dataclass(frozen=True)
class Fleet:
    """All rows of a manifest, in its order. ``kept``: how many of them earlier calls have done."""

    title: str
    command: str
    started: str
    tool: str
    rows: tuple[Row, ...]
    kept: int = 0
    unfinished: int = 0


def count(fleet: Fleet) -> str:
    """``12 rows: 10 ok, 1 not equivalent, 1 failed``, and how many were kept or are not done."""
    answers = Counter(row.answer for row in fleet.rows)
    told = ", ".join(f"{answers[answer]} {answer}" for answer in ANSWERS if answers[answer])
    more = f"; {fleet.kept} of them kept from earlier calls" if fleet.kept else ""
    left = f"; {fleet.unfinished} not done yet" if fleet.unfinished else ""
    return f"{many(len(fleet.rows), 'row')}: {told or 'none'}{more}{left}"


def versions(rows: Sequence[Row]) -> Mapping[str, tuple[str, ...]]:
    """Which machines had which PyTorch."""
    known = sorted({row.torch for row in rows if row.torch})
    return {torch: tuple(sorted({row.machine for row in rows if row.torch == torch})) for torch in known}


def facts(fleet: Fleet) -> tuple[str, ...]:
    """The lines above the table."""
    torches = versions(fleet.rows)
    ran = [f"PyTorch {torch} on {', '.join(machines)}" for torch, machines in torches.items()]
    if len(ran) > 1:
        ran = [f"PyTorch differs between machines, so that counts may, too: {'; '.join(ran)}"]
    return (f"{fleet.tool}, {fleet.started}", *ran)


def cells(row: Row) -> tuple[str, ...]:
    """A row under ``HEAD``, as plain text."""
    pairs = [_pair(row, name) for name in ("breaks", "recompiles", "launches")]
    return (row.model, row.case or NONE, row.mode or NONE, row.do, row.answer, _fixes(row), *pairs, won(row), mae(row))


def times(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows with times, by the machine that they were measured on."""
    timed = [row for row in rows if "eager_ms" in row.figures or "before_ms" in row.figures]
    return {place: [row for row in timed if where(row) == place] for place in dict.fromkeys(map(where, timed))}


def where(row: Row) -> str:
    """The machine, its device and its PyTorch; "" for what was not measured."""
    return f"{row.machine} ({row.device}, torch {row.torch})" if row.torch else ""


def time_cells(row: Row) -> tuple[str, ...]:
    """A row under ``TIMES``."""
    spent = [decimal(row.figures.get(name)) for name in ("eager_ms", "before_ms", "after_ms")]
    return (row.model, row.case or NONE, row.mode or NONE, row.do, *spent, won(row))


def won(row: Row) -> str:
    """The speedup."""
    if "speedup" not in row.figures:
        return NONE
    return f"{row.figures['speedup']:.2f}x{' (noise)' if row.noise else ''}"


def mae(row: Row) -> str:
    """The mean absolute error."""
    error = row.figures.get("mae")
    return NONE if error is None else "0" if error == 0 else f"{error:.1e}"


def remarks(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """What there is to say of rows beyond their figures: each with its name."""
    told = []
    for row in rows:
        again = (f"begun {row.tries} times",) if row.tries > 1 else ()
        told += [(row.name, "; ".join((row.told, *again, *row.notes)))]
    return told


def _fixes(row: Row) -> str:
    names = ("safe", "unsafe", "noted")
    known = [f"{row.figures[name]:.0f}" for name in names if name in row.figures]
    if known:
        return " / ".join(known)
    return f"{row.figures['causes']:.0f} causes" if "causes" in row.figures else NONE


def _pair(row: Row, name: str) -> str:
    before, after = (row.figures.get(f"{name}_{tree}") for tree in ("before", "after"))
    if before is None:
        return NONE
    return f"{before:.0f}" if after is None else f"{before:.0f} -> {after:.0f}"
