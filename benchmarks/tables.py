"""Markdown tables that a benchmark makes, and their place in a document: nobody types a figure."""

from __future__ import annotations

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
