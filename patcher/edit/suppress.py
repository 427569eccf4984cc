"""``# fix-compile: ignore[FC101]  reason``: places where the user does not want to hear from a rule."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

# The word must end there: "ignored" is prose, and "ignore[FC101" (never closed) must not silence every rule.
_COMMENT = re.compile(r"#\s*fix-compile:\s*(ignore-file|ignore)(?:\s*\[([^\[\]]*)\]|(?=\s|$)(?!\s*\[))")


@dataclass(frozen=True)
class Ignore:
    """One comment. ``names``: what it lists; None: every rule. ``column``: where it starts, in characters from 0."""

    line: int
    whole_file: bool
    names: frozenset[str] | None
    column: int = 0

    def names_rule(self, code: str, name: str) -> bool:
        """Whether the rule ``code``/``name`` is meant."""
        return self.names is None or any(means(item, code, name) for item in self.names)


Ignores: TypeAlias = frozenset[Ignore]


def means(item: str, code: str, name: str) -> bool:
    """Whether ``item`` (a code, the beginning of one, or a name) stands for the rule ``code``/``name``."""
    return bool(item) and (item == name or code.startswith(item.upper()))


@dataclass(frozen=True)
class Suppressions:
    """The ignore comments of one file."""

    ignores: tuple[Ignore, ...] = ()

    def covers(self, code: str, name: str, first_line: int, last_line: int) -> bool:
        """Whether the rule ``code``/``name`` is silenced from ``first_line`` to ``last_line`` (from 1, inclusive).

        Give the lines of the statement's header: a comment on any of them counts, and so does ``ignore-file`` anywhere.
        """
        return bool(self.covering(code, name, first_line, last_line))

    def covering(self, code: str, name: str, first_line: int, last_line: int) -> Ignores:
        """The comments that silence it there."""
        return frozenset(
            ignore
            for ignore in self.ignores
            if (ignore.whole_file or first_line <= ignore.line <= last_line) and ignore.names_rule(code, name)
        )


def suppressions(text: str) -> Suppressions:
    """The ignore comments in ``text``: codes, code prefixes or rule names in brackets, or none for all rules."""
    if "fix-compile:" not in text:
        return Suppressions()
    return Suppressions(tuple(_ignores(text)))


def _ignores(text: str) -> Iterator[Ignore]:
    lines = io.StringIO(text, newline=None)  # any newline, so that lines count as they do in the syntax tree
    try:
        for token in tokenize.generate_tokens(lines.readline):
            if token.type == tokenize.COMMENT and "fix-compile:" in token.string:
                for match in _COMMENT.finditer(token.string):
                    kind, names = match.group(1), match.group(2)
                    listed = None if names is None else frozenset(p.strip() for p in names.split(",") if p.strip())
                    yield Ignore(token.start[0], kind == "ignore-file", listed, token.start[1] + match.start())
    except (tokenize.TokenError, SyntaxError):
        return  # the parser says what is wrong with such a file
