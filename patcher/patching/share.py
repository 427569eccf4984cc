"""A share of the files, worked on in one process: all are summarised, then, with the project known, patched."""

from __future__ import annotations

import ast
import dataclasses
import gc
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from patcher.files.lines import split_lines
from patcher.files.source import Source, SourceError, digest_of, encode, may_matter, read_bytes, source_of
from patcher.results import FileResult, PatchResult
from patcher.rule import Rule
from patcher.settings import Settings

#: What a line says that only newer versions take; the first that fits.
_SIGNS: tuple[tuple[tuple[int, int], re.Pattern[str]], ...] = (
    ((3, 11), re.compile(r"^\s*except\s*\*")),
    ((3, 12), re.compile(r"^\s*type\s+\w+\s*(\[.*\]\s*)?=[^=]")),
    ((3, 12), re.compile(r"^\s*((async\s+)?def|class)\s+\w+\s*\[")),
    ((3, 13), re.compile(r"^\s*((async\s+)?def|class|type)\s+\w+\s*\[[^\]]*=[^\]]*\]")),
    ((3, 14), re.compile(r"(?<![\w'\"])([tT][rR]?|[rR][tT])(['\"])")),
)
_FSTRING = re.compile(r"(?<![\w'\"])([fF][rR]?|[rR][fF])(['\"]).*\{.*(\2|\\|#)")


def needed(text: str, error: SyntaxError) -> tuple[int, int] | None:
    """The version from which on Python takes the line of ``error``, when that is newer than this one."""
    lines = split_lines(text)
    line = lines[error.lineno - 1] if error.lineno and error.lineno <= len(lines) else ""
    found = [version for version, sign in _SIGNS if sign.search(line)]
    if "f-string" in str(error.msg) or _FSTRING.search(line):
        found.append((3, 12))  # quotes of the string's own kind, comments and backslashes between the braces
    newest = max(found, default=None)
    return newest if newest is not None and newest > sys.version_info[:2] else None


#: Syntax trees are kept between the two phases for this many bytes of source, all processes together. A tree takes
#: about 28 times its source, so this is about 0.8 GB; files beyond it are parsed twice.
KEPT_SOURCE_BYTES = 30_000_000

#: After so many bytes of source what was left in circles is cleared away. Python's own way, by the number of objects,
#: looks at the facts of a file again and again while they are needed: a tenth of the time of a scan.
_COLLECTED_BYTES = 1_000_000

#: A file that is named may have any ending; with none of these it is passed over when it is no Python.
_ENDINGS = (".py", ".pyw", ".pyi")

_DEEP = 120  # levels of a syntax tree; hand-written code has fewer than 50


@dataclass(frozen=True)
class Steps:
    """The engine as functions: a file's summary, summaries to a project, and a text to its patch.

    ``merge`` gets the summaries, and whether they are of all files of the project.
    """

    summarise: Callable[[ast.Module, str], Any]
    merge: Callable[..., Any]
    patch: Callable[[str, str, Sequence[Rule], Settings, Any, ast.Module | None], PatchResult]


@dataclass(frozen=True)
class Summary:
    """What the first phase says about a file; ``facts`` is None for a file that could not be worked on.

    ``digest``: of the bytes that were read, b"" when they could not be.
    """

    path: str
    facts: Any = None
    digest: bytes = b""


@dataclass(frozen=True)
class Answer:
    """What the second phase says about a file.

    ``digest``: of the bytes that were worked on. ``lasting``: the same bytes, with the same project, give this result
    again.
    """

    result: FileResult
    digest: bytes = b""
    lasting: bool = False


@dataclass(frozen=True)
class _Held:
    source: Source
    tree: ast.Module | None
    digest: bytes


class Share:
    """Reads and parses a file once for both phases. No method raises for what is in a file.

    ``beside``: the files that are summarised, and not worked on.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        settings: Settings,
        steps: Steps,
        kept_bytes: int = KEPT_SOURCE_BYTES,
        beside: frozenset[str] = frozenset(),
    ) -> None:
        self._rules = rules
        self._settings = settings
        self._steps = steps
        self._room = kept_bytes
        asked = (rule for rule in rules if settings.extents or not rule.needs_extents)
        self._triggers = tuple(rule.triggers for rule in asked if settings.wants(rule.code, rule.name, rule.switch))
        self._known: dict[str, _Held | Answer] = {}
        self._worked_on = 0
        self._beside = beside

    def summarise(self, path: str) -> Summary:
        """The file's part of the project index."""
        tree, digest = self._taken(path)
        if tree is None:
            return Summary(path, None, digest)
        try:
            return Summary(path, self._steps.summarise(tree, path), digest)
        except Exception as error:
            if path not in self._beside:
                self._known[path] = Answer(FileResult(path, error=_one_line(error)))
            return Summary(path, None, digest)

    def patch(self, path: str, project: Any) -> FileResult:
        """The file's result; bytes and findings are there only when there is something to tell."""
        return self.answer(path, project).result

    def answer(self, path: str, project: Any) -> Answer:
        """The file's result, and what it depends on."""
        if path not in self._known:
            self._taken(path)
        known = self._known.pop(path)
        if isinstance(known, Answer):
            return known
        self._worked_on += len(known.source.data)
        if self._worked_on >= _COLLECTED_BYTES:
            self._worked_on = 0
            gc.collect()
        try:
            result = self._patched(known, project)
            lasting = result.patch is None or not result.patch.bugs
            return Answer(result, known.digest, lasting)
        except RecursionError as error:
            ours = _depth(known.source.text) < _DEEP
            return Answer(FileResult(path, error=_our_bug(error) if ours else _one_line(error)))
        except Exception as error:
            return Answer(FileResult(path, error=_one_line(error)))

    def _taken(self, path: str) -> tuple[ast.Module | None, bytes]:
        """The tree of the file, which is known from now on, and the digest of its bytes."""
        digest, source = b"", None
        try:
            data = read_bytes(path)
            digest = digest_of(data)
            source = source_of(path, data)
            tree = ast.parse(source.text)
            if not path.endswith(_ENDINGS) and _is_data(tree):
                raise SourceError("does nothing")
        except Exception as error:
            lasting = isinstance(error, (SourceError, SyntaxError))
            if path in self._beside:
                told = FileResult(path, beside=True)
            elif lasting and digest and not path.endswith(_ENDINGS):
                told = FileResult(path, other=True)
            else:
                told = FileResult(path, error=_one_line(error, source.text if source else ""))
            self._known[path] = Answer(told, digest, lasting)
            return None, digest
        if path in self._beside:
            self._known[path] = Answer(FileResult(path, beside=True), digest, lasting=True)
        elif may_matter(data, self._triggers):
            self._room -= len(data)
            self._known[path] = _Held(source, tree if self._room >= 0 else None, digest)
        else:
            self._known[path] = Answer(FileResult(path), digest, lasting=True)
        return tree, digest

    def _patched(self, held: _Held, project: Any) -> FileResult:
        source, path = held.source, held.source.path
        patch = self._steps.patch(source.text, path, self._rules, self._settings, project, held.tree)
        idle = patch.not_compiled
        if patch.text != source.text:
            after = encode(patch.text, source.encoding)
            return FileResult(path, source.data, after, source.encoding, patch, not_compiled=idle)
        if patch == PatchResult(patch.text, not_compiled=idle):
            return FileResult(path, not_compiled=idle)
        told = dataclasses.replace(patch, text="")
        return FileResult(path, encoding=source.encoding, patch=told, not_compiled=idle)


def _is_data(tree: ast.Module) -> bool:
    """Whether it is a notebook, JSON or a word that Python takes, too, and not a program."""
    return all(isinstance(s, ast.Expr) and not isinstance(s.value, ast.Call) for s in tree.body)


def _one_line(error: Exception, text: str = "") -> str:
    if isinstance(error, SourceError):
        return str(error)
    if isinstance(error, SyntaxError):
        line = f"line {error.lineno}: " if error.lineno else ""
        told = f"{line}syntax error: {error.msg} (read as Python {sys.version_info[0]}.{sys.version_info[1]}"
        version = needed(text, error)
        return told + (f"; this looks like {version[0]}.{version[1]}: run fix-compile with that)" if version else ")")
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
