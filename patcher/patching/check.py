"""What ``check`` compares the findings with before it tells of them: a revision, and a file of those that are known."""

from __future__ import annotations

import ast
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from patcher.config import Config, ConfigError
from patcher.files import atomic
from patcher.files.backup import Store
from patcher.files.git import GitError, commit_of, git, top_of, untracked
from patcher.files.source import reason, shown
from patcher.harness.processes import Progress
from patcher.measuring.budget import BudgetError, LockError, compared, recorded
from patcher.measuring.measure import Request
from patcher.patching.calls import FAILURE, INTERRUPTED, OK, Told, complaints, verify
from patcher.report import Outcome
from patcher.results import FileResult, Reported

SCHEMA = 1


class BaselineError(Exception):
    """A file that is no baseline, or cannot be read or written; the message is one line."""


class Known(NamedTuple):
    """What a finding is known by. ``path``: relative to the folder of the baseline, with slashes."""

    path: str
    rule: str
    scope: str
    code: str


@dataclass(frozen=True)
class Baseline:
    """How often each finding may be there. ``folder``: that paths are relative to."""

    folder: Path
    counts: Counter[Known]


def read_baseline(file: Path) -> Baseline:
    """The baseline in ``file``. Raises ``BaselineError``."""
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise BaselineError(f"{file}: cannot be read: {reason(error)}; --write-baseline writes it") from None
    except ValueError:
        raise BaselineError(f"{file}: is no baseline: no JSON") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise BaselineError(f"{file}: is no baseline of this version (schema {SCHEMA})")
    try:
        return Baseline(file.absolute().parent, Counter(dict(_entries(document))))
    except (KeyError, TypeError, AttributeError, ValueError):
        raise BaselineError(f"{file}: is a damaged baseline; --write-baseline writes it anew") from None


def marked(outcome: Outcome, baseline: Baseline) -> Outcome:
    """The same with the findings that are known marked as such, and the number of those that are gone."""
    folder, left = baseline.folder, Counter(baseline.counts)
    results = [_marked(r, left, partial(_known, folder, r.path)) for r in outcome.results]
    moved: Counter[tuple[str, ...]] = Counter()  # of files that are not there any more, by all but the file
    for known, count in left.items():
        if count and not (folder / known.path).is_file():
            moved[known[1:]] += count
    results = [_marked(r, moved, lambda item: _known(folder, "", item)[1:]) for r in results] if moved else results
    seen = {_below(folder, result.path) for result in outcome.looked_at}
    gone = sum(count for known, count in left.items() if known.path in seen) + sum(moved.values())
    return replace(outcome, results=tuple(results), baseline=True, gone=gone)


def write_baseline(outcome: Outcome, file: Path) -> int:
    """Write all findings of a run; returns how many there are. Raises ``BaselineError``."""
    folder = file.absolute().parent
    counts = Counter(_known(folder, entry.path, entry.reported) for entry in (*outcome.entries, *outcome.known))
    found: dict[str, list[dict[str, Any]]] = {}
    for known, count in sorted(counts.items()):
        told = {"rule": known.rule, "scope": known.scope, "code": known.code}
        found.setdefault(known.path, []).append({**told, **({"count": count} if count > 1 else {})})
    document = {"schema": SCHEMA, "tool": f"fix-compile {outcome.version}", "findings": found}
    try:
        atomic.create(str(file), (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8"))
    except OSError as error:
        raise BaselineError(f"{file}: cannot be written: {reason(error)}") from None
    return counts.total()


def _entries(document: dict[str, Any]) -> list[tuple[Known, int]]:
    return [
        (Known(str(path), str(item["rule"]), str(item["scope"]), str(item["code"])), int(item.get("count", 1)))
        for path, items in document["findings"].items()
        for item in items
    ]


def _marked(result: FileResult, left: Counter[Any], key: Callable[[Reported], tuple[str, ...]]) -> FileResult:
    """Take from ``left`` what is there, line by line."""
    if result.patch is None:
        return result
    found = []
    for item in result.patch.found:
        known = not (item.known or item.suppressed) and left[key(item)] > 0
        left[key(item)] -= known
        found.append(replace(item, known=item.known or known))
    return replace(result, patch=replace(result.patch, found=tuple(found)))


def _known(folder: Path, path: str, item: Reported) -> Known:
    return Known(_below(folder, path), item.code, item.scope, item.about)


def _below(folder: Path, path: str) -> str:
    return os.path.relpath(Path(path).absolute(), folder).replace(os.sep, "/")


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
            outcome = marked(outcome, read_baseline(against.known))
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
    count = write_baseline(outcome, file)
    told = "" if outcome.quiet else f"{count} finding{'' if count == 1 else 's'} written to {shown(file)}\n"
    return Told(OK, told, errors)
