"""Names for findings that stay when lines move or are formatted, for programs that follow a finding over time."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from patcher.report.outcome import Entry


def fingerprints(entries: Sequence[Entry]) -> list[str]:
    """One for each entry: of its file, rule, scope and code, and which of those that are alike it is, by line."""
    alike: Counter[tuple[str, str, str, str]] = Counter()
    marks: dict[int, str] = {}
    for number in sorted(range(len(entries)), key=lambda n: (entries[n].reported.line, entries[n].reported.column)):
        entry = entries[number]
        key = (entry.path.replace("\\", "/"), entry.reported.code, entry.reported.scope, entry.reported.about)
        alike[key] += 1
        marks[number] = hashlib.sha256("\0".join((*key, str(alike[key]))).encode("utf-8", "surrogatepass")).hexdigest()
    return [marks[number][:32] for number in range(len(entries))]
