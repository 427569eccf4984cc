"""Markdown tables that a benchmark makes, and their place in a document: nobody types a figure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; what stands in a cell keeps to it."""
    lines = [list(map(cell, head)), ["---"] * len(head), *([cell(value) for value in row] for row in rows)]
    text = ["| " + " | ".join(line) + " |" for line in lines]
    text[1] = "|" + "---|" * len(head)
    return "\n".join(text)


def cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def rows_of(document: Path | None, name: str) -> list[list[str]]:
    """The cells of a table that `put` has written, without its head; [] where there is none."""
    text = document.read_text(encoding="utf-8") if document is not None and document.is_file() else ""
    part = text.partition(f"<!-- {name}: written by benchmarks -->")[2].partition(f"<!-- end of {name} -->")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ") and line.endswith(" |")]
    return [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line[1:-1])] for line in lines[1:]]


def put(document: Path | None, name: str, text: str) -> None:
    """Print the text; with a document, put it between the two comments there that name it."""
    if document is None:
        print(text)
        return
    start, end = f"<!-- {name}: written by benchmarks -->", f"<!-- end of {name} -->"
    old = document.read_text(encoding="utf-8") if document.is_file() else ""
    before, opened, rest = old.partition(start)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        before, after = (old.rstrip() + "\n\n" if old.strip() else ""), "\n"
    document.write_text(f"{before}{start}\n\n{text}\n\n{end}{after}", encoding="utf-8")
