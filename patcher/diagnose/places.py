"""From what the harness calls a place (``file:line``) to the file, the line and the function it means."""

from __future__ import annotations

import ast
import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from patcher.files.lines import opcodes
from patcher.files.source import SourceError, read

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_INSTALLED = re.compile(r"^.*?/(?:site|dist)-packages/")


@dataclass(frozen=True)
class Place:
    """A line of a file that is being looked at. ``path``: as the user spells it; ``shown``: as the harness does."""

    path: str
    shown: str
    line: int

    @property
    def where(self) -> str:
        """``file:line``."""
        return f"{self.shown}:{self.line}"


class _Definition(NamedTuple):
    """A function or class. ``first``: its first line, which may be a decorator's; ``head``: that of its ``def``."""

    first: int
    last: int
    name: str
    is_class: bool
    head: int


@dataclass(frozen=True)
class File:
    """A source text, and what of it a place may be asked for."""

    path: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """As ``ast`` counts them."""
        return _lines(self.text)

    def head(self, line: int) -> int:
        """The line itself, or when it is where a definition begins, that of its ``def`` or ``class``."""
        return next((d.head for d in self._definitions if d.first == line), line)

    @cached_property
    def _definitions(self) -> list[_Definition]:
        found: list[_Definition] = []

        def walk(node: ast.AST, names: tuple[str, ...]) -> None:
            for child in ast.iter_child_nodes(node):
                inner = names
                if isinstance(child, _DEFINITIONS):
                    inner = (*names, child.name)
                    first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                    last, is_class = child.end_lineno or child.lineno, isinstance(child, ast.ClassDef)
                    found.append(_Definition(first, last, ".".join(inner), is_class, child.lineno))
                walk(child, inner)

        with contextlib.suppress(RecursionError):
            walk(self._tree, ())
        return found

    def scope(self, line: int) -> str:
        """The qualified name of the innermost function or class around ``line``; "" at module level."""
        around = [d for d in self._definitions if d.first <= line <= d.last]
        return max(around, key=lambda d: d.first).name if around else ""

    def covers(self, first: int, last: int, line: int) -> bool:
        """Whether a finding from line ``first`` to ``last`` is about ``line``: of a branch or loop, its heads only."""
        heads = self._branches.get(first)
        return line in heads if heads else first <= line <= last

    @cached_property
    def _branches(self) -> dict[int, frozenset[int]]:
        """For the first line of a branch or loop, the lines of its tests: also those of ``elif``."""
        found: dict[int, frozenset[int]] = {}
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.If, ast.While, ast.For, ast.AsyncFor)):
                lines, part = set(range(node.lineno, max(node.body[0].lineno, node.lineno + 1))), node.orelse
                while isinstance(node, ast.If) and len(part) == 1 and isinstance(part[0], ast.If):
                    lines |= set(range(part[0].lineno, max(part[0].body[0].lineno, part[0].lineno + 1)))
                    part = part[0].orelse
                found.setdefault(node.lineno, frozenset(lines))
        return found

    def statement(self, line: int) -> range:
        """The lines of the statement that ``line`` is part of; of one that holds others the line alone."""
        simple = (n for n in ast.walk(self._tree) if isinstance(n, ast.stmt) and not hasattr(n, "body"))
        around = ((n.lineno, n.end_lineno or n.lineno) for n in simple)
        return next((range(first, last + 1) for first, last in around if first <= line <= last), range(line, line + 1))

    @cached_property
    def _tree(self) -> ast.Module:
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return ast.Module([], [])

    def class_of(self, scope: str) -> str:
        """The innermost class that is or holds the definition called ``scope``; "" when there is none."""
        classes = [d.name for d in self._definitions if d.is_class]
        holding = [name for name in classes if scope == name or scope.startswith(f"{name}.")]
        return max(holding, key=len, default="")

    def excerpt(self, line: int, around: int = 3) -> tuple[tuple[int, str], ...]:
        """Lines with their numbers, from ``around`` before to ``around`` after, of the same function."""
        scope = self.scope(line)
        numbers = range(max(1, line - around), min(len(self.lines), line + around) + 1)
        return tuple((n, self.lines[n - 1]) for n in numbers if n == line or self.scope(n) == scope)


class Places:
    """The files that are being looked at, under the names that the harness gives them.

    ``base``, ``roots``: as in the plan: the folder that locations are relative to, and where imports start.
    """

    def __init__(self, paths: Iterable[str], base: str, roots: Sequence[str]) -> None:
        self._names: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        tops = [os.path.join(os.path.realpath(p), "") for p in (base or os.curdir, *roots)]
        spelled = [os.path.join(os.path.abspath(p), "") for p in (base or os.curdir, *roots)]
        for path in paths:
            names = []
            for full in (os.path.abspath(path), os.path.realpath(path)):
                shown = full
                for top in (*spelled, *tops):
                    shown = shown.removeprefix(top)
                names.append(_INSTALLED.sub("", shown))
            self._shown[path] = names[0]
            for name in (*names, path):
                self._names.setdefault(name, path)
        self._files: dict[str, File | None] = {}

    def place(self, where: str) -> Place | None:
        """What ``file:line`` is; None for a file that is not being looked at."""
        name, _, line = where.rpartition(":")
        path = self._names.get(name)
        return Place(path, name, int(line)) if path is not None and line.isdigit() else None

    def path(self, name: str) -> str | None:
        """The path of a file that the harness calls by this name; None for one that is not being looked at."""
        return self._names.get(name)

    def shown(self, path: str) -> str:
        """A path of ours as the harness shows it."""
        return self._shown.get(path, path)

    def file(self, path: str) -> File | None:
        """The text of a path of ours, read once; None when it cannot be read."""
        if path not in self._files:
            try:
                self._files[path] = File(path, read(path).text)
            except (OSError, SourceError):
                self._files[path] = None
        return self._files[path]


def original_lines(before: str, after: str) -> dict[int, int]:
    """For each line of ``after`` (from 1) the line of ``before`` that it is, or that its change begins at."""
    old, new = _lines(before), _lines(after)
    found: dict[int, int] = {}
    for tag, i1, i2, j1, j2 in opcodes(old, new):
        for offset in range(j2 - j1):
            same = i1 + offset if tag == "equal" else min(i1 + offset, max(i2 - 1, i1))
            found[j1 + offset + 1] = min(same + 1, max(len(old), 1))
    return found


def _lines(text: str) -> list[str]:
    """As ``ast`` and Dynamo count them: a form feed or a separator of paragraphs ends none."""
    return re.split(r"\r\n|\n|\r", text)
