"""Which errors docstrings tell people to expect: those are caught by somebody, in code that nobody here reads."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from patcher.facts.syntax.tree import FunctionNode, Syntax

if TYPE_CHECKING:
    from patcher.facts.project.index import Project

#: ``Raises:`` on a line of its own, also with the line of dashes below it.
_HEADING = re.compile(r"^(\s*)raises?\s*:?\s*$", re.IGNORECASE)
_RULED = re.compile(r"^\s*-+\s*$")
#: ``ValueError: if ...``, ``ValueError`` alone on its line, in backticks or not.
_ENTRY = re.compile(r"^\s*[-*]?\s*`{0,2}(?:~|:\w+:`)?([A-Za-z_][\w.]*)`{0,2}\s*(?::|$|\(|--?\s|if\b|when\b)")
#: ``:raises ValueError: if ...``.
_FIELD = re.compile(r":(?:raises?|except|exception)\s+([^:\n]+):")


def documented(function: FunctionNode, syntax: Syntax) -> frozenset[str]:
    """The last names of the errors that the docstring of ``function``, or of its class, says it raises."""
    cls = syntax.class_of(function)
    texts = [ast.get_docstring(n) for n in (function, cls) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    return frozenset(name.rpartition(".")[2] for text in texts if text and "aise" in text for name in _named(text))


def _named(text: str) -> Iterator[str]:
    for found in _FIELD.finditer(text):
        yield from re.findall(r"[A-Za-z_][\w.]*", found[1])
    lines = text.split("\n")
    for at, line in enumerate(lines):
        heading = _HEADING.match(line)
        if heading is None:
            continue
        ruled = at + 1 < len(lines) and _RULED.match(lines[at + 1]) is not None
        for entry in lines[at + 1 + ruled :]:
            inside = len(entry) - len(entry.lstrip()) > len(heading[1])
            if entry.strip() and not inside and not ruled:
                break
            if _HEADING.match(entry) or _RULED.match(entry):
                break
            if (named := _ENTRY.match(entry)) is not None:
                yield named[1]


class Documented:
    """Answers for one index over the project."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def by(self, function: str, error: str) -> str | None:
        """Return the dotted ``function`` where its docstring, or that of its class, names ``error`` or one above."""
        summary, kind = self.project.function(function), getattr(builtins, error, None)
        kinds = [c.__name__ for c in kind.__mro__] if isinstance(kind, type) else [error]
        return function if summary is not None and not summary.documented.isdisjoint(kinds) else None
