"""Which answers of earlier runs still hold: those to the same question about the same bytes.

A *question* is the tool, the rules and the settings. What is found in a file depends on its bytes and on the summaries
of all files of the project (the *index*). So a *snapshot* of a run is taken; the summary of a file that has the same
bytes is not made again, whatever the question, and its result holds as long as the index is the same.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from patcher.files import kept
from patcher.files.source import SourceError, digest_of, read_bytes
from patcher.patching.share import Answer, Summary
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.settings import Settings


@dataclass(frozen=True)
class Index:
    """What a run knew of the files of a project.

    ``packages``: what their dotted names depend on, as `_packages` has it. ``starred``: path to the digest of files of
    which another imports all names. ``summaries``: absolute path to the sha256 of the file's bytes (b"" of one that
    could not be read), and what they say.
    """

    packages: frozenset[str]
    starred: Mapping[str, bytes]
    summaries: Mapping[str, tuple[bytes, Any]]


@dataclass(frozen=True)
class Snapshot:
    """What a run has seen and said.

    ``packages``, ``starred``: as `Index` has them. ``digests``: path to the digest of the file's bytes, of all files of
    the project. ``results``: path to what will be said again of the same bytes, without the bytes.
    """

    packages: frozenset[str]
    starred: Mapping[str, bytes]
    digests: Mapping[str, bytes]
    results: Mapping[str, FileResult]


@dataclass(frozen=True)
class Known:
    """What is known of the files before any of them is worked on.

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
    """The answers to one question, and the index that all questions about the same files have in common."""

    def __init__(self, folder: Path, tool: str, question: str) -> None:
        self._folder, self._tool, self.question = folder, tool, question

    @classmethod
    def of(
        cls,
        folder: Path | None,
        rules: Sequence[Rule],
        settings: Settings,
        where: tuple[Sequence[str], bool, bool, bool],
    ) -> Reuse | None:
        """What is kept in ``folder``, a folder of the user's cache; None when an answer must not be kept.

        That is so when the answer depends on more than the settings (what a run has shown) or when a rule is not fully
        described by source files. ``where``: the paths, and `runner.run`'s ``fixes``, ``every`` and ``each``.
        """
        sources = tool_digest(rules) if folder is not None else None
        shown = (
            settings.evidence
            or settings.traced
            or settings.extents
            or settings.torch_settings
            or settings.observed.files
        )
        if folder is None or sources is None or settings.only is not None or shown:
            return None
        tool = (sources, sys.version, platform.python_implementation())
        paths, fixes, every, each = where
        asked = {
            "libcst": importlib.metadata.version("libcst") if fixes or each else "",
            "rules": [f"{type(rule).__module__}.{type(rule).__qualname__}" for rule in rules],
            "settings": [(f.name, _plain(getattr(settings, f.name))) for f in fields(settings)],
            "where": (str(Path.cwd()), tuple(paths), fixes, every, each),
        }
        return cls(folder, _name(tool), _name((tool, asked)))

    def recall(self, files: Sequence[str], given: Sequence[str]) -> Known:
        """What still holds for the ``files`` of a project, of which some are ``given`` to be worked on."""
        packages = _packages(files)
        content = {path: _content(path) for path in files}
        digests = {path: digest_of(data) if data is not None else b"" for path, data in content.items()}
        results: dict[str, FileResult] = {}
        snapshot = kept.load(self._folder, f"{self.question}.results")
        if isinstance(snapshot, Snapshot) and _same(snapshot, packages):
            same = {path for path in given if digests[path] and digests[path] == snapshot.digests.get(path)}
            results = {path: _whole(r, content[path]) for path, r in snapshot.results.items() if path in same}
            if len(results) == len(given) and snapshot.digests == digests:
                return Known(results=results, complete=True)
        return self._indexed(files, packages, digests, snapshot, results)

    def _indexed(
        self,
        files: Sequence[str],
        packages: frozenset[str],
        digests: Mapping[str, bytes],
        snapshot: Snapshot,
        results: Mapping[str, FileResult],
    ) -> Known:
        """The summaries that still hold, and those of ``results`` that do if nothing else changes the index."""
        index = kept.load(self._folder, f"{self._index_of(files)}.summaries")
        if not isinstance(index, Index) or not _same(index, packages):
            return Known()
        spelled = {os.path.abspath(path): path for path in files}
        before = {spelled.get(path, path): known for path, known in index.summaries.items()}
        facts = {path: replace(f, path=path) if f and f.path != path else f for path, (_, f) in before.items()}
        same = {path for path in files if digests[path] and digests[path] == before.get(path, (b"", None))[0]}
        summaries = {path: Summary(path, facts[path], digests[path]) for path in same}
        if not results or {path: digest for path, (digest, _) in before.items()} != snapshot.digests:
            return Known(summaries)
        return Known(summaries, results, facts)

    def remember(
        self, results: Mapping[str, FileResult], summaries: Sequence[Summary], answers: Iterable[Answer]
    ) -> None:
        """Take a snapshot: ``summaries`` of all files, ``answers`` that are new, ``results`` that still hold."""
        digests = {summary.path: summary.digest for summary in summaries}
        results = {path: replace(result, before=b"") for path, result in results.items()}
        for answer in answers:
            path = answer.result.path
            results.pop(path, None)
            if answer.lasting and answer.digest == digests.get(path):
                results[path] = replace(answer.result, before=b"")
        starred = _digests({file for summary in summaries if summary.facts for file in summary.facts.relies})
        packages, known = _packages(list(digests)), {os.path.abspath(s.path): (s.digest, s.facts) for s in summaries}
        kept.save(self._folder, f"{self.question}.results", Snapshot(packages, starred, digests, results))
        kept.save(self._folder, f"{self._index_of(list(digests))}.summaries", Index(packages, starred, known))

    def _index_of(self, files: Sequence[str]) -> str:
        """The name of the index of the project of ``files``, however these are spelled."""
        return _name((self._tool, os.path.commonpath(map(os.path.abspath, files)) if files else ""))


def _same(known: Snapshot | Index, packages: frozenset[str]) -> bool:
    return known.packages == packages and known.starred == _digests(known.starred)


def _name(asked: object) -> str:
    return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def tool_digest(rules: Sequence[Rule]) -> str | None:
    """The digest of the source of the tool and of the rules; None when it cannot be told."""
    tops = {Path(__file__).parents[1]}
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
