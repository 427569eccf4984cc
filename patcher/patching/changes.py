"""A change that somebody else has made, as results: of a diff, or of all that has happened since a revision."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from patcher.files.git import GitError, commit_of, contents, git, names, top_of, untracked
from patcher.files.source import reason, shown
from patcher.results import FileResult

_LISTED = 5


class ChangeError(Exception):
    """A diff that does not fit, or a revision that is not there; the message is one line."""


@dataclass(frozen=True)
class Change:
    """What is to be judged. Nothing of it is ever written.

    ``results``: the Python files that differ. ``on_disk``: which side of it the files on disk are. ``told``: what the
    two sides are, in one line. ``notes``: what else one should know, a line each.
    """

    results: tuple[FileResult, ...]
    on_disk: Literal["original", "patched"]
    told: str
    notes: tuple[str, ...] = ()

    def without(self, files: Iterable[str]) -> Change:
        """The same, without the files of the cases: the judge is not judged."""
        own = {os.path.realpath(file) for file in files}
        left = tuple(r for r in self.results if os.path.realpath(r.path) not in own)
        same = [shown(r.path) for r in self.results if r not in left]
        told = f"{', '.join(same)}: a case is the same on both sides: as it is on disk"
        return replace(self, results=left, notes=(*self.notes, told)) if same else self


def since(revision: str, path: str) -> Change:
    """All that differs between ``revision`` and the files on disk, in the repository around ``path``.

    Also what is not committed, and new files that git is not told to ignore. Raises ``ChangeError``.
    """
    try:
        top = top_of(path)
        commit = commit_of(top, revision)
        listed = git(top, "diff", "-z", "--no-renames", "--no-ext-diff", "--name-only", commit, "--")
        differing = [*names(listed), *untracked(top)]
        changed = [name for name in dict.fromkeys(differing) if name.endswith(".py")]
        before = contents(top, commit, changed)
        uncommitted = names(git(top, "status", "-z", "--porcelain"))
    except GitError as error:
        raise ChangeError(str(error)) from None
    results = []
    for name in changed:
        result = _result(top / name, before.get(name), _bytes_of(top / name))
        results += [result] if result is not None else []
    short = commit[:10]
    said = revision if short.startswith(revision) else f"{revision} ({short})"
    told = f"original: {said}; patched: the files on disk{_uncommitted(uncommitted)}"
    return Change(tuple(results), "patched", told, _others(differing))


def of_diff(diff: bytes, name: str, folders: Sequence[str]) -> Change:
    """What a unified diff makes of the files on disk; ``name``: of the diff, for messages.

    Its names are taken to be relative to the repository around the first of ``folders``, else to the working folder, or
    to one of ``folders``: the first where the files are that it changes. Raises ``ChangeError``.
    """
    try:
        return _of_diff(diff, name, folders)
    except GitError as error:
        raise ChangeError(f"{name}: {_plainly(str(error))}") from None


def _of_diff(diff: bytes, name: str, folders: Sequence[str]) -> Change:
    if not diff.strip():
        raise ChangeError(f"{name}: is empty")
    with tempfile.TemporaryDirectory(prefix="fix-compile-") as folder:
        below = Path(folder)
        base, strip, named = _fitting(diff, below, _bases(folders))
        python = [file for file in named.all if file.endswith(".py")]
        if not python:
            raise ChangeError(f"{name}: changes no Python source ({_listed(named.all)})")
        if binary := [file for file in python if file in named.binary]:
            raise ChangeError(f"{name}: is a binary patch of {_listed(binary)}, which cannot be measured")
        for file in named.found:
            if file in python:
                (below / file).parent.mkdir(parents=True, exist_ok=True)
                (below / file).write_bytes((base / file).read_bytes())
        _apply(diff, below, strip, "--include=*.py", "--whitespace=nowarn")
        pairs = [(base / file, _bytes_of(base / file), _bytes_of(below / file)) for file in python]
    results = [result for result in (_result(*pair) for pair in pairs) if result is not None]
    told = f"original: the files on disk{_state(base)}; patched: these with {name}"
    return Change(tuple(results), "original", told, _others(named.all, named.binary))


@dataclass(frozen=True)
class _Named:
    """The files that a diff is about, before or after: all, those that are there, those without text."""

    all: tuple[str, ...]
    found: tuple[str, ...]
    binary: frozenset[str]


def _fitting(diff: bytes, below: Path, bases: Sequence[Path]) -> tuple[Path, str, _Named]:
    """Where the names of a diff begin, with ``a/`` before them or without: where most of its files are."""
    readings: list[tuple[Path, str, _Named]] = []
    wrong: GitError | None = None
    for strip in ("-p1", "-p0"):
        try:
            every = _names_in(diff, below, strip)
        except GitError as error:
            wrong = wrong or error
            continue
        binary = frozenset(name for name, is_binary in every.items() if is_binary)
        for base in bases:
            found = tuple(name for name in every if (base / name).is_file())
            readings.append((base, strip, _Named(tuple(every), found, binary)))
    if not readings:
        raise wrong or GitError("No valid patches in input")
    return max(readings, key=lambda reading: len(reading[2].found))


def _names_in(diff: bytes, below: Path, strip: str) -> dict[str, bool]:
    """The names of the files in a diff, and whether each is binary."""
    every: dict[str, bool] = {}
    for way in ((), ("-R",)):  # a file that is moved has one name before and another one after
        told = _apply(diff, below, strip, *way, "--numstat", "-z")
        for line in names(told):
            added, _, name = line.partition("\t")
            every[name.partition("\t")[2]] = added == "-"
    outside = [name for name in every if Path(name).is_absolute() or os.pardir in name.split("/")]
    if outside:
        raise GitError(f"changes {_listed(outside)}, which is outside of the project")
    return every


def _apply(diff: bytes, below: Path, *options: str) -> bytes:
    """``git apply`` in a folder that is in no repository, whatever is around it."""
    return git(below, "apply", *options, "-", given=diff, environment={"GIT_CEILING_DIRECTORIES": str(below.parent)})


def _bases(folders: Sequence[str]) -> list[Path]:
    """Where the names of a diff may begin."""
    bases = [Path.cwd()]
    with contextlib.suppress(GitError):  # it need not be a repository
        bases.insert(0, top_of(folders[0] if folders else os.curdir))
    for folder in map(Path, folders):
        inside = folder if folder.is_dir() else folder.parent
        bases += [inside.absolute(), inside.absolute().parent]
    return list(dict.fromkeys(bases))


def _state(base: Path) -> str:
    try:
        dirty = names(git(base, "status", "-z", "--porcelain", "--untracked-files=no"))
    except GitError:
        return ""
    return _uncommitted(dirty)


def _uncommitted(files: Sequence[str]) -> str:
    return f" (not committed: {len(files)} file{'' if len(files) == 1 else 's'})" if files else ""


def _result(path: Path, before: bytes | None, after: bytes | None) -> FileResult | None:
    if before == after:
        return None
    return FileResult(shown(path), before or b"", after or b"", created=before is None, removed=after is None)


def _bytes_of(path: Path) -> bytes | None:
    if not path.is_file():
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise ChangeError(f"{shown(path)}: cannot be read: {reason(error)}") from None


def _others(files: Sequence[str], binary: Collection[str] = ()) -> tuple[str, ...]:
    """A line about the files that are no Python source."""
    others = [f"{file} (binary)" if file in binary else file for file in files if not file.endswith(".py")]
    return (f"no Python source, so the same on both sides: {_listed(others)}",) if others else ()


_MISSING = re.compile(r"(?P<file>.+): No such file or directory$")
_FAILED = re.compile(r"patch failed: (?P<file>.+):(?P<line>\d+)$")


def _plainly(said: str) -> str:
    """What git has against a diff, in our words where it has some of its own."""
    if found := _FAILED.match(said):
        return f"does not fit {found['file']} at line {found['line']}"
    if said.startswith("No valid patches in input"):
        return "is no unified diff"
    if found := _MISSING.match(said):
        return f"changes {found['file']}, which is not there"
    return said


def _listed(files: Sequence[str]) -> str:
    return ", ".join([*files[:_LISTED], *([f"and {len(files) - _LISTED} more"] if len(files) > _LISTED else [])])
