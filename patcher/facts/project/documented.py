"""Which errors docstrings tell people to expect: those are caught by somebody, in code that nobody here reads."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cached_property
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

#: As many callers are looked at: whoever is further away does not think of this error.
_MOST = 200


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
    """Answers for one index over the project; kept."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._known: dict[str, dict[str, str]] = {}

    def by(self, function: str, error: str) -> str | None:
        """The function that documents ``error``: the dotted ``function`` itself, or one that gets to it."""
        if function not in self._known:
            self._known[function] = self._gather(function) if self._any else {}
        kind = getattr(builtins, error, None)
        kinds = [c.__name__ for c in kind.__mro__] if isinstance(kind, type) else [error]
        told = self._known[function]
        return next((told[name] for name in kinds if name in told), None)

    @cached_property
    def _any(self) -> bool:
        return any(f.documented for _, f in self.project.functions())

    def _gather(self, function: str) -> dict[str, str]:
        found: dict[str, str] = {}
        stack, seen = [function], {function}
        while stack:
            name = stack.pop(0)  # the nearest first
            summary = self.project.function(name)
            for error in summary.documented if summary is not None else ():
                found.setdefault(error, name)
            more = dict.fromkeys(c for c in self._callers(name) if c not in seen) if len(seen) < _MOST else {}
            seen.update(more)
            stack += more
        return found

    def _callers(self, function: str) -> Iterator[str]:
        """Functions that may run ``function``, as far as they name it, or the module whose ``forward`` it is."""
        owner, _, last = function.rpartition(".")
        for mention, module, summary in self.project.mentions(last) if last not in ("forward", "__call__") else ():
            caller = f"{module}.{summary.qualname}"
            method = mention.startswith(".")
            if method or function in self.project.named(mention, caller.rpartition(".")[0]):
                yield caller
        if last in ("forward", "__call__"):
            for attribute in self.project.holding[owner]:
                for mention, module, summary in self.project.mentions(attribute):
                    if mention == f"self.{attribute}":
                        yield f"{module}.{summary.qualname}"
