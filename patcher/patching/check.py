"""What ``check`` compares the findings with before it tells of them: a revision, and a file of those that are known."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.config import Config, ConfigError
from patcher.files import baseline
from patcher.files.backup import Store
from patcher.files.baseline import BaselineError
from patcher.files.git import GitError, commit_of, git, top_of, untracked
from patcher.files.source import shown
from patcher.harness.processes import Progress
from patcher.measuring.budget import BudgetError, LockError, compared, recorded
from patcher.measuring.measure import Request
from patcher.patching.calls import FAILURE, INTERRUPTED, OK, Told, complaints, verify
from patcher.report import Outcome
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


FILE = "fix-compile-baseline.json"


@dataclass(frozen=True)
class Against:
    """``diff_base``: a git revision. ``known``: a baseline; ``writes``: it is written instead of read.

    ``cases``: what is counted, and compared with its budgets; ``locks``: these are recorded instead.
    """

    diff_base: str | None = None
    known: Path | None = None
    writes: bool = False
    cases: Request | None = None
    locks: bool = False
    progress: Progress | None = None


def known_file(given: str | None, config: Config, writes: bool) -> Path | None:
    """The baseline that is in force: the option, else the configuration; where one is to be written, there is one."""
    if given:
        return Path(given)
    if config.baseline is not None and config.root is not None:
        return config.root / config.baseline
    return Path(FILE) if writes else None


def checked(
    outcome: Outcome,
    against: Against,
    store: Store,
    paths: Sequence[str],
    format_: str,
    program: str,
    command: Sequence[str] = (),
) -> Told:
    """The end of a check. Raises ``ConfigError`` for a revision, a baseline or a lock that cannot be followed."""
    try:
        if against.diff_base:
            changed = changed_lines(against.diff_base, next((p for p in paths if Path(p).exists()), os.curdir))
            outcome = replace(outcome, results=tuple(on_changed_lines(outcome.results, changed)))
        if against.known is not None and against.writes:
            return _written(outcome, against.known)
        if against.known is not None:
            outcome = baseline.marked(outcome, baseline.read(against.known))
    except DiffBaseError as error:
        raise ConfigError(f"--diff-base: {error}") from None
    except BaselineError as error:
        raise ConfigError(f"--baseline: {error}") from None
    if against.cases is None:
        return verify(outcome, store, paths, format_, program)
    try:
        if against.locks:
            ran = recorded(against.cases, paths, command, against.progress)
            return verify(replace(outcome, ran=ran), store, paths, format_, program)
        found = compared(against.cases, paths, command, against.progress)
    except KeyboardInterrupt:
        return Told(INTERRUPTED, err=("interrupted",))
    except (BudgetError, LockError) as error:
        raise ConfigError(f"--case: {error}") from None
    return verify(replace(outcome, overruns=found.overruns, ran=found.notes), store, paths, format_, program)


def _written(outcome: Outcome, file: Path) -> Told:
    errors = tuple(complaints(outcome))
    if outcome.failed:
        return Told(FAILURE, err=(*errors, "no baseline was written"))
    count = baseline.write(outcome, file)
    told = "" if outcome.quiet else f"{count} finding{'' if count == 1 else 's'} written to {shown(file)}\n"
    return Told(OK, told, errors)
