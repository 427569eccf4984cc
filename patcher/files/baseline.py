"""Findings that are known: a file that says which, and those of a run that are in it.

A finding is known by its file, rule, enclosing scope and code, not by its line, and as often as the file says.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from patcher.files import atomic
from patcher.files.source import reason
from patcher.report.outcome import Outcome
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


def read(file: Path) -> Baseline:
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
    left = Counter(baseline.counts)
    results = [_marked(result, baseline.folder, left) for result in outcome.results]
    moved = _homeless(left, baseline.folder)
    results = [_marked_elsewhere(result, moved) for result in results] if moved else results
    seen = {_below(baseline.folder, result.path) for result in outcome.looked_at}
    gone = sum(count for known, count in left.items() if known.path in seen) + sum(moved.values())
    return replace(outcome, results=tuple(results), baseline=True, gone=gone)


def write(outcome: Outcome, file: Path) -> int:
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


def _marked(result: FileResult, folder: Path, left: Counter[Known]) -> FileResult:
    """Take from ``left`` what is there, line by line."""

    def is_known(item: Reported) -> bool:
        known = _known(folder, result.path, item)
        if item.suppressed or not left[known]:
            return False
        left[known] -= 1
        return True

    return _with_marks(result, is_known)


def _marked_elsewhere(result: FileResult, moved: Counter[tuple[str, str, str]]) -> FileResult:
    """The same for findings of files that are not there any more: the code was moved."""

    def is_known(item: Reported) -> bool:
        key = (item.code, item.scope, item.about)
        if item.suppressed or not moved[key]:
            return False
        moved[key] -= 1
        return True

    return _with_marks(result, is_known)


def _with_marks(result: FileResult, is_known: Callable[[Reported], bool]) -> FileResult:
    if result.patch is None:
        return result
    found = tuple(item if item.known else replace(item, known=is_known(item)) for item in result.patch.found)
    return replace(result, patch=replace(result.patch, found=found))


def _homeless(left: Counter[Known], folder: Path) -> Counter[tuple[str, str, str]]:
    """What is left of files that are not there, by what it is known by without its file."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for known, count in left.items():
        if count and not _is_there(known, folder):
            counts[known[1:]] += count
    return counts


def _is_there(known: Known, folder: Path) -> bool:
    return (folder / known.path).is_file()


def _known(folder: Path, path: str, item: Reported) -> Known:
    return Known(_below(folder, path), item.code, item.scope, item.about)


def _below(folder: Path, path: str) -> str:
    return os.path.relpath(Path(path).absolute(), folder).replace(os.sep, "/")
