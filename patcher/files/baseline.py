"""Findings that are known: a file that says which, and those of a run that are in it.

A finding is known by its file, rule, enclosing scope and code, not by its line, and as often as the file says.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
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
