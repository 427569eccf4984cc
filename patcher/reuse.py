"""Which answers of the last run still hold: those to the same question about the same bytes.

A *question* is the tool, the rules and the settings. What is found in a file depends on its bytes, on the summaries of
all files together (the *index*), and, when a rule has asked for them, on the files around. So a *snapshot* of a run is
taken; the summary of a file that has the same bytes is not made again, and its result holds as long as the index, and
what was read around, are the same.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from patcher import kept
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.settings import Settings
from patcher.share import Answer, Summary
from patcher.source import SourceError, digest_of, read_bytes
from patcher.surroundings import Surroundings


@dataclass(frozen=True)
class Snapshot:
    """What a run has seen and said.

    ``digests``: path to the sha256 of the file's bytes, b"" of one that could not be read. ``packages``: what their
    dotted names depend on, as `_packages` has it. ``around``: the digest of the files around, b"" when nobody asked for
    them. ``starred``: path to the digest of files of which another imports all names. ``results``: path to what will be
    said again of the same bytes, without the bytes.
    """

    digests: Mapping[str, bytes]
    packages: frozenset[str]
    around: bytes
    starred: Mapping[str, bytes]
    results: Mapping[str, FileResult]


@dataclass(frozen=True)
class Known:
    """What is known of the given files before any of them is worked on.

    ``summaries``: of the files with the same bytes, by path. ``results``: what holds if the index is as it was.
    ``index``: path to the facts that each file's summary had; None when it was another set of files. ``complete``:
    nothing at all has changed, and ``results`` is the answer.
    """

    summaries: Mapping[str, Summary] = field(default_factory=dict)
    results: Mapping[str, FileResult] = field(default_factory=dict)
    index: Mapping[str, Any] | None = None
    complete: bool = False

    def holds(self, summaries: Sequence[Summary]) -> bool:
        """Whether the index of these summaries is the one that ``results`` were found with."""
        return self.index is not None and {s.path: s.facts for s in summaries} == self.index


class Reuse:
    """The answers to one question in ``folder``, a folder of the user's cache."""

    def __init__(self, folder: Path, question: str, around: Surroundings) -> None:
        self._folder, self._name, self._around = folder, question, around
        self._around_before = b""
        self._started = time.time_ns()

    def recall(self, files: Sequence[str]) -> Known:
        """What still holds for ``files``."""
        snapshot = kept.load(self._folder, f"{self._name}.results")
        if not isinstance(snapshot, Snapshot):
            return Known()
        if snapshot.packages != _packages(files) or snapshot.starred != _digests(snapshot.starred):
            return Known()
        content = {path: _content(path) for path in files}
        digests = {path: digest_of(data) if data is not None else b"" for path, data in content.items()}
        same = {path for path in files if digests[path] and digests[path] == snapshot.digests.get(path)}
        if snapshot.around:
            self._around_before = self._around.digest()
        results: dict[str, FileResult] = {}
        if self._around_before == snapshot.around:
            results = {path: _whole(r, content[path]) for path, r in snapshot.results.items() if path in same}
        if len(results) == len(files) == len(snapshot.digests):
            return Known(results=results, complete=True)
        before = kept.load(self._folder, f"{self._name}.summaries")
        if not isinstance(before, dict) or before.keys() != snapshot.digests.keys():
            return Known()
        summaries = {
            path: Summary(path, before[path][1], digests[path]) for path in same if before[path][0] == digests[path]
        }
        if before.keys() != set(files):
            return Known(summaries)
        return Known(summaries, results, {path: facts for path, (_, facts) in before.items()})

    def remember(
        self, results: Mapping[str, FileResult], summaries: Sequence[Summary], answers: Iterable[Answer]
    ) -> None:
        """Take a snapshot: ``summaries`` of all files, ``answers`` that are new, ``results`` that still hold."""
        digests = {summary.path: summary.digest for summary in summaries}
        around = self._around_before if results else b""
        results = {path: replace(result, before=b"") for path, result in results.items()}
        for answer in answers:
            path = answer.result.path
            results.pop(path, None)
            if answer.lasting and answer.digest == digests.get(path):
                results[path] = replace(answer.result, before=b"")
            if answer.asked_around and not around:
                around = self._around.digest()
                if self._around.changed_since(self._started):
                    return  # it may have been read as it was before
        starred = _digests({file for summary in summaries if summary.facts for file in summary.facts.relies})
        snapshot = Snapshot(digests, _packages(list(digests)), around, starred, results)
        kept.save(self._folder, f"{self._name}.results", snapshot)
        kept.save(self._folder, f"{self._name}.summaries", {s.path: (s.digest, s.facts) for s in summaries})


def question(
    rules: Sequence[Rule],
    settings: Settings,
    paths: Sequence[str],
    fixes: bool,
    every: bool = True,
    each: bool = False,
) -> str | None:
    """The name of what is asked; None when an answer must not be kept.

    That is so when the answer depends on more than the settings (what a run has shown) or when a rule is not fully
    described by source files.
    """
    sources = tool_digest(rules)
    shown = settings.evidence or settings.traced or settings.extents or settings.torch_settings
    if sources is None or settings.only is not None or shown:
        return None
    asked = {
        "sources": sources,
        "python": (sys.version, platform.python_implementation()),
        "libcst": importlib.metadata.version("libcst") if fixes or each else "",
        "rules": [f"{type(rule).__module__}.{type(rule).__qualname__}" for rule in rules],
        "settings": [(f.name, _plain(getattr(settings, f.name))) for f in fields(settings)],
        "where": (str(Path.cwd()), tuple(paths), fixes, every, each),
    }
    return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def tool_digest(rules: Sequence[Rule]) -> str | None:
    """The digest of the source of the tool and of the rules; None when it cannot be told."""
    tops = {Path(__file__).parent}
    for rule in rules:
        kind = type(rule)
        package = sys.modules.get(kind.__module__.partition(".")[0])
        file = getattr(package, "__file__", None)
        if file is None or "<locals>" in kind.__qualname__ or vars(rule):
            return None
        tops.add(Path(file).parent if hasattr(package, "__path__") else Path(file))
    digest = hashlib.sha256()
    try:
        for top in sorted(tops):
            files = sorted(top.rglob("*.py")) if top.is_dir() else [top]
            if not files:
                return None
            for file in files:
                digest.update(f"{file}\0".encode("utf-8", "surrogatepass") + digest_of(file.read_bytes()))
    except OSError:
        return None
    return digest.hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, frozenset):  # whose order is another one in each process
        return sorted(value)
    return sorted(value.items()) if isinstance(value, Mapping) else value


def _packages(files: Iterable[str]) -> frozenset[str]:
    """What the dotted names of files depend on.

    The folders of the files, and above, that are packages; the files in folders that are none, which others import by
    the name of a folder that is no part of theirs.
    """
    folders = {str(above) for folder in {os.path.dirname(path) for path in files} for above in _from(folder)}
    packages = {folder for folder in folders if os.path.exists(os.path.join(folder, "__init__.py"))}
    return frozenset(packages | {path for path in files if os.path.dirname(path) not in packages})


def _digests(files: Iterable[str]) -> Mapping[str, bytes]:
    """The digest of each of ``files``, b"" of one that is gone."""
    return {path: digest_of(data) if (data := _content(path)) is not None else b"" for path in files}


def _from(folder: str) -> Iterator[Path]:
    """``folder`` and those above it, as far as the path goes."""
    yield Path(folder)
    yield from Path(folder).parents


def _content(path: str) -> bytes | None:
    try:
        return read_bytes(path)
    except SourceError:
        return None


def _whole(result: FileResult, data: bytes | None) -> FileResult:
    return replace(result, before=data or b"") if result.after else result
