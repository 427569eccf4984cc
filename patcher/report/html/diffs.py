"""Unified diffs side by side. Where there is no room for two columns, what was removed comes before what was added."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from patcher.report.html.blocks import command, margin, numbered
from patcher.report.html.markup import Child, Markup, element, join

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MOSTLY = 0.5  # share of a line that must be the same for the rest of it to be marked


class Line(NamedTuple):
    """A line and its number; ``open``: the file ends there without a newline."""

    number: int
    text: str
    open: bool = False


@dataclass(frozen=True)
class Block:
    """Lines that are the same on both sides, or lines that took the place of others."""

    before: tuple[Line, ...]
    after: tuple[Line, ...]
    same: bool


@dataclass(frozen=True)
class Hunk:
    """Neighbouring blocks of a file."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class FileDiff:
    """The hunks of one file."""

    name: str
    hunks: tuple[Hunk, ...]


def side_by_side(diff: str) -> Markup:
    """The diff in two columns; one that cannot be read as a diff is shown as it is."""
    files = parsed(diff)
    if not files:
        return command(diff) if diff.strip() else Markup("")
    return join(_file(file) for file in files)


def parsed(diff: str) -> tuple[FileDiff, ...]:
    """The files of a unified diff. The counts of a hunk tell where it ends, for a line may look like a header."""
    files: list[FileDiff] = []
    name, hunks = "", list[Hunk]()
    lines = diff.split("\n")
    at = 0
    while at < len(lines):
        if lines[at].startswith("--- ") and lines[at + 1 : at + 2] and lines[at + 1].startswith("+++ "):
            if hunks:
                files.append(FileDiff(name, tuple(hunks)))
            name, hunks = _name(lines[at], lines[at + 1]), []
            at += 2
            continue
        found = _HUNK.match(lines[at])
        at += 1
        if found:
            hunk, at = _hunk(lines, at, found)
            hunks.append(hunk)
    return (*files, FileDiff(name, tuple(hunks))) if hunks else tuple(files)


def _name(before: str, after: str) -> str:
    """The name after the change, or of a file that is removed the name before it."""
    names = [line[4:].partition("\t")[0] for line in (after, before)]
    name = next((name for name in names if name != "/dev/null"), "")
    return name[2:] if name.startswith(("a/", "b/")) else name


def _hunk(lines: list[str], at: int, head: re.Match[str]) -> tuple[Hunk, int]:
    old, new = int(head[1]), int(head[3])
    left, right = (int(count) if count is not None else 1 for count in (head[2], head[4]))
    told: list[tuple[str, Line]] = []
    while at < len(lines):
        sign, text = lines[at][:1], lines[at][1:]
        if sign == "\\":
            last = -2 if told and told[-1][0] == "=" else -1  # a line that is the same is there twice
            told[last:] = [(mark, line._replace(open=True)) for mark, line in told[last:]]
        elif not (left or right):
            break
        elif sign == "-":
            told.append((sign, Line(old, text)))
            old, left = old + 1, max(left - 1, 0)
        elif sign == "+":
            told.append((sign, Line(new, text)))
            new, right = new + 1, max(right - 1, 0)
        else:  # some tools leave out the blank of an empty line
            told.append((" ", Line(old, text)))
            told.append(("=", Line(new, text)))
            old, new, left, right = old + 1, new + 1, max(left - 1, 0), max(right - 1, 0)
        at += 1
    cut = margin(line.text for _, line in told)
    return Hunk(tuple(_blocks((sign, line._replace(text=line.text[cut:])) for sign, line in told))), at


def _blocks(told: Iterable[tuple[str, Line]]) -> Iterator[Block]:
    before: list[Line] = []
    after: list[Line] = []
    same = True
    for sign, line in told:
        kept = sign not in "-+"
        if (before or after) and (kept != same or (sign == "-" and after)):
            yield Block(tuple(before), tuple(after), same)
            before, after = [], []
        same = kept
        (before if sign in "- " else after).append(line)
    if before or after:
        yield Block(tuple(before), tuple(after), same)


def _file(file: FileDiff) -> Markup:
    hunks = (element("div", (_block(block) for block in hunk.blocks), class_="hunk") for hunk in file.hunks)
    named = f"Diff of {file.name}" if file.name else "Diff"
    heads = (
        element("p", text, class_=f"head {side}") for text, side in ((file.name or "before", "old"), ("after", "new"))
    )
    return element("div", element("div", heads, class_="heads"), hunks, class_="diff", role="group", aria_label=named)


def _block(block: Block) -> Markup:
    if block.same:
        before, after = (_lines((line, join(line.text)) for line in side) for side in (block.before, block.after))
        return join(
            element("div", before, class_="side"), element("div", after, class_="side copy", aria_hidden="true")
        )
    old, new = _marked(block)
    return join(
        element("del", _lines(old), class_="side old") if old else element("div", class_="side void"),
        element("ins", _lines(new), class_="side new") if new else element("div", class_="side void"),
    )


def _marked(block: Block) -> tuple[list[tuple[Line, Markup]], list[tuple[Line, Markup]]]:
    """Both sides; where each line has one opposite that is much like it, what differs in them is marked."""
    old, new = ([(line, join(line.text)) for line in side] for side in (block.before, block.after))
    if len(old) == len(new):
        for i, (was, now) in enumerate(zip(block.before, block.after, strict=True)):
            start = _alike(was.text, now.text)
            end = _alike(was.text[start:][::-1], now.text[start:][::-1])
            blank = len(was.text) - len(was.text.lstrip())
            shorter = min(len(was.text), len(now.text)) - blank
            if was.text != now.text and start - blank + end >= _MOSTLY * shorter:
                old[i], new[i] = (was, _middle(was.text, start, end)), (now, _middle(now.text, start, end))
    return old, new


def _alike(one: str, other: str) -> int:
    """How many characters are the same at the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _middle(text: str, start: int, end: int) -> Markup:
    stop = len(text) - end
    parts: list[Child] = [text[:start]]
    if start < stop:
        parts.append(element("mark", text[start:stop]))
    return join(*parts, text[stop:])


def _lines(lines: Iterable[tuple[Line, Markup]]) -> Markup:
    told = []
    for line, text in lines:
        ending = element("span", "no newline at the end", class_="ending") if line.open else Markup("")
        told.append(numbered(line.number, line.text, join(text, ending)))
    return join(told)
