"""How a call or a dictionary is written where one line is too short for it: each part on a line of its own."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.rule import Code

_INDENT = "    "


@dataclass(frozen=True)
class Part:
    """``text``: a template with one hole for each of ``parts``, numbered from 0: ``mode={0}``."""

    text: str
    parts: tuple[ast.expr | Code, ...] = ()

    @property
    def width(self) -> int:
        """On one line, as far as that is known."""
        holes = {f"{{{n}}}": unparsed(p) for n, p in enumerate(self.parts)}
        text = self.text
        for hole, written in holes.items():
            text = text.replace(hole, written)
        return len(text.replace("{{", "{").replace("}}", "}"))


def unparsed(part: ast.expr | Code) -> str:
    """About what ``part`` will look like on one line."""
    if isinstance(part, ast.expr):
        return ast.unparse(part)
    text = part.template
    for number, inner in enumerate(part.parts):
        text = text.replace(f"{{{number}}}", unparsed(inner))
    return text.replace("{{", "{").replace("}}", "}")


def enclosed(start: Part, inside: Sequence[Part], end: Part, room: int | None, depth: int = 0) -> Code:
    """``start``, what is ``inside`` with commas between, and ``end``: on one line where it has the ``room``.

    ``room``: None where there is no end to it. ``depth``: of the line that it begins in; what is inside stands one
    deeper where there is no room.
    """
    every = [start, *inside, end]
    texts, number = [], 0
    for part in every:
        texts.append(_moved(part, number))
        number += len(part.parts)
    parts = tuple(p for part in every for p in part.parts)
    first, *middle, last = texts
    width = sum(part.width for part in every) + 2 * (len(inside) - 1)
    if room is None or width <= room or not middle:
        return Code(f"{first}{', '.join(middle)}{last}", parts)
    lines = "".join(f"{_INDENT * (depth + 1)}{text},\n" for text in middle)
    return Code(f"{first}\n{lines}{_INDENT * depth}{last}", parts)


def room_at(node: ast.expr, facts: Facts) -> int:
    """How wide ``node`` may be on its line: what follows it there is at most a bracket."""
    return facts.line_length - node.col_offset - (not isinstance(facts.syntax.parents[node], ast.stmt))


def room_below(node: ast.expr, name: str, facts: Facts) -> int:
    """How wide the value of the argument ``name`` may be on a line of its own, in the call ``node``."""
    return facts.line_length - facts.syntax.statement_of(node).col_offset - len(_INDENT) - len(f"{name}=,")


def _moved(part: Part, by: int) -> str:
    text = part.text
    for number in reversed(range(len(part.parts))):
        text = text.replace(f"{{{number}}}", f"{{{number + by}}}")
    return text
