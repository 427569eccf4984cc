"""What the comments of a file say, which its syntax tree does not hold."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cached_property

#: What only somebody writes who has compiled the code, or exported it, and looked.
_COMPILING = re.compile(
    r"graph[- ]?breaks?\b|\btorch[._](compile|export|_?dynamo)\b|\bdynamo\b|\binductor\b|\bfullgraph\b", re.IGNORECASE
)


class Comments:
    """The comments of one text, read when first asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _by_line(self) -> dict[int, str]:
        found: dict[int, str] = {}
        lines = io.StringIO(self._text, newline=None)  # any newline, as in the syntax tree
        try:
            for token in tokenize.generate_tokens(lines.readline):
                if token.type == tokenize.COMMENT:
                    found[token.start[0]] = token.string
        except (tokenize.TokenError, SyntaxError):
            pass  # what was read up to there
        return found

    def about_compiling(self, first: int, last: int) -> int | None:
        """The first line from ``first`` to ``last`` (from 1) whose comment speaks of how the code gets compiled."""
        return next((n for n, told in self._by_line.items() if first <= n <= last and _COMPILING.search(told)), None)
