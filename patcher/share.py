"""A share of the files, worked on in one process: all are summarised, then, with the project known, patched."""

from __future__ import annotations

import ast
import dataclasses
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patcher.results import FileResult, PatchResult
from patcher.rule import Rule
from patcher.settings import Settings
from patcher.source import Source, SourceError, encode, may_matter, read

#: Syntax trees are kept between the two phases for this many bytes of source, all processes together. A tree takes
#: about 28 times its source, so this is about 1.1 GB; files beyond it are parsed twice.
KEPT_SOURCE_BYTES = 40_000_000

_DEEP = 120  # levels of a syntax tree; hand-written code has fewer than 50


@dataclass(frozen=True)
class Steps:
    """The engine as three functions: a file's summary, summaries to a project, and a text to its patch.

    ``merge`` also gets a function that finds the files around, tree and path of those that hold certain words.
    """

    summarise: Callable[[ast.Module, str], Any]
    merge: Callable[[Iterable[Any], Callable[[frozenset[str]], list[tuple[ast.Module, str]] | None]], Any]
    patch: Callable[[str, str, Sequence[Rule], Settings, Any, ast.Module | None], PatchResult]


@dataclass(frozen=True)
class Summary:
    """What the first phase says about a file; ``facts`` is None for a file that has nothing to do with torch."""

    path: str
    facts: Any = None


@dataclass(frozen=True)
class _Held:
    source: Source
    tree: ast.Module | None


class Share:
    """Reads and parses a file once for both phases. No method raises for what is in a file."""

    def __init__(
        self, rules: Sequence[Rule], settings: Settings, steps: Steps, kept_bytes: int = KEPT_SOURCE_BYTES
    ) -> None:
        self._rules = rules
        self._settings = settings
        self._steps = steps
        self._room = kept_bytes
        self._triggers = tuple(rule.triggers for rule in rules if settings.wants(rule.code, rule.name))
        self._known: dict[str, _Held | FileResult] = {}

    def summarise(self, path: str) -> Summary:
        """The file's part of the project index."""
        try:
            return self._summary(path)
        except Exception as error:
            self._known[path] = FileResult(path, error=_one_line(error))
            return Summary(path)

    def patch(self, path: str, project: Any) -> FileResult:
        """The file's result; bytes and findings are there only when there is something to tell."""
        if path not in self._known:
            self.summarise(path)
        known = self._known.pop(path)
        if isinstance(known, FileResult):
            return known
        try:
            return self._patched(known, project)
        except RecursionError as error:
            ours = _depth(known.source.text) < _DEEP
            return FileResult(path, error=_our_bug(error) if ours else _one_line(error))
        except Exception as error:
            return FileResult(path, error=_one_line(error))

    def _summary(self, path: str) -> Summary:
        source = read(path)
        tree = ast.parse(source.text)
        matters = may_matter(source.data, self._triggers)
        if matters:
            self._room -= len(source.data)
            self._known[path] = _Held(source, tree if self._room >= 0 else None)
        else:
            self._known[path] = FileResult(path)
        return Summary(path, self._steps.summarise(tree, path))

    def _patched(self, held: _Held, project: Any) -> FileResult:
        source, path = held.source, held.source.path
        patch = self._steps.patch(source.text, path, self._rules, self._settings, project, held.tree)
        if patch.text != source.text:
            return FileResult(path, source.data, encode(patch.text, source.encoding), source.encoding, patch)
        if patch == PatchResult(patch.text):
            return FileResult(path)
        return FileResult(path, encoding=source.encoding, patch=dataclasses.replace(patch, text=""))


def _one_line(error: Exception) -> str:
    if isinstance(error, SourceError):
        return str(error)
    if isinstance(error, SyntaxError):
        line = f"line {error.lineno}: " if error.lineno else ""
        return f"{line}syntax error: {error.msg} (read as Python {sys.version_info[0]}.{sys.version_info[1]})"
    if isinstance(error, RecursionError):
        return "is nested too deeply to be worked on"
    if isinstance(error, MemoryError):
        return "is too large or nested too deeply to be worked on (out of memory)"
    return _our_bug(error)


def _our_bug(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:300]
    where = f"{Path(place.filename).name}:{place.lineno}"
    return f"internal error, a bug in fix-compile: {type(error).__name__} at {where}: {text}"


def _depth(text: str) -> int:
    """How deep the syntax tree is; measured only when something has run out of stack."""
    level: list[ast.AST] = [ast.parse(text)]
    depth = 0
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth
