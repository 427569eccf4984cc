"""Findings on lines that have changed since a git revision."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from patcher.files.git import GitError, commit_of, git, top_of, untracked
from patcher.results import FileResult, Reported

_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

#: First and last line, from 1; None in their place: the whole file is new.
Ranges = Sequence[tuple[int, int]] | None


class DiffBaseError(Exception):
    """A revision that is not there, or no repository; the message is one line."""


def changed_lines(revision: str, path: str) -> Mapping[str, Ranges]:
    """By the real path of each Python file that differs: the lines that are new or changed, as the file is on disk.

    The repository is the one around ``path``. What is compared with is the last commit that ``revision`` and what is
    checked out have in common: what has happened to ``revision`` since is nobody's change here. Raises
    ``DiffBaseError``.
    """
    try:
        top = top_of(path)
        base = _merge_base(top, commit_of(top, revision))
        how = ("--unified=0", "--find-renames", "--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/")
        told = git(top, "-c", "core.quotePath=true", "diff", *how, base, "--", "*.py")
        found: dict[str, Ranges] = {os.path.realpath(top / name): ranges for name, ranges in _ranges(told).items()}
        return {**found, **{os.path.realpath(top / name): None for name in untracked(top, "*.py")}}
    except GitError as error:
        raise DiffBaseError(str(error)) from None


def on_changed_lines(results: Sequence[FileResult], changed: Mapping[str, Ranges]) -> list[FileResult]:
    """``results`` without the findings in other places. What a file cannot be read for is told all the same."""
    return [_on_changed_lines(result, changed) for result in results]


def _on_changed_lines(result: FileResult, changed: Mapping[str, Ranges]) -> FileResult:
    if result.patch is None:
        return result
    ranges = changed.get(os.path.realpath(result.path), ())
    if ranges is None:
        return result

    def is_on(item: Reported) -> bool:
        return any(first <= (item.head_end or item.end_line) and item.line <= last for first, last in ranges)

    left = tuple(item for item in result.patch.found if is_on(item))
    return replace(result, patch=replace(result.patch, found=left, suppressed=sum(i.suppressed for i in left)))


def _merge_base(top: Path, commit: str) -> str:
    try:
        return git(top, "merge-base", commit, "HEAD").decode("ascii").strip() or commit
    except GitError:  # a shallow clone, or no common history
        return commit


def _ranges(diff: bytes) -> dict[str, list[tuple[int, int]]]:
    """The new lines of each file in a diff without context."""
    found: dict[str, list[tuple[int, int]]] = {}
    here: list[tuple[int, int]] = []
    left = 0  # lines of a hunk: what looks like a header in them is none
    for line in diff.split(b"\n"):
        if left and line[:1] in (b"+", b"-"):
            left -= 1
        elif line.startswith(b"+++ "):
            here = found.setdefault(_name(line[4:]), [])
        elif hunk := _HUNK.match(line):
            removed, first, count = (int(number or 1) for number in hunk.groups())
            left = count + removed
            here += [(first, first + count - 1)] if count else []
    return found


def _name(written: bytes) -> str:
    """The file name in a header: in quotes, where it has something in it that is not plain."""
    name = written.rstrip(b"\t\r")
    if name.startswith(b'"'):
        name = ast.literal_eval("b" + name.decode("ascii"))
    return os.fsdecode(name.removeprefix(b"b/"))
