"""Everything that a report may tell about one run."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from patcher.results import Altered, FileResult, Overrun, Reported, RuleText


def remedy(entry: Entry) -> str:
    """The call that makes the fix, with what an unsafe one takes for granted; or why there is none."""
    item = entry.reported
    path = shlex.quote(entry.path)
    strategy = f" (strategy {item.strategy})" if item.strategy else ""
    more = f"\nMore: fix-compile rules {item.code}"
    if item.applicability == "safe":
        return f"Fix: fix-compile fix --select {item.code} {path}{strategy}{more}"
    if item.applicability == "unsafe":
        fix = f"fix-compile fix --unsafe --select {item.code} {path}{strategy}"
        return f"Fix, if this holds: {item.assumption}: {fix}{more}"
    because = f"No fix: {item.assumption}. " if item.assumption else ""
    return f"{because}What to do: fix-compile rules {item.code}"


Call = Literal["apply", "dry-run", "verify-only"]

#: ``fixed``: the repair is on disk. ``fixable``: a run with these options makes it. ``unsafe``: it takes ``--unsafe``.
Status = Literal["fixed", "fixable", "unsafe", "no-fix"]


@dataclass(frozen=True)
class Entry:
    """A finding in a file. Lines are those of the file as it is on disk when the run is over (fixed: as they were)."""

    path: str
    reported: Reported
    status: Status


@dataclass(frozen=True)
class Outcome:
    """One run.

    ``call``: what was asked for. ``quiet``: no notes. ``written``: the paths whose patch is on disk. ``refused``: path
    to the reason why a patch could not be written. ``run``, ``store``: the number and folder of the originals.
    ``measured``: what selftest has shown of rules on the torch that is installed, a line each, by code.
    ``strict``: a patched file that was altered since fails the check. ``described``: rules for people, by code, where
    the format has room for them. ``baseline``: whether findings were compared with those that are known; ``gone``: how
    many of these are not there any more. ``overruns``: of the cases that were run, what is beyond their budgets;
    ``ran``: a line for each of them.
    """

    call: Call
    results: tuple[FileResult, ...]
    version: str
    target_torch: tuple[int, int]
    unsafe: bool = False
    quiet: bool = False
    written: frozenset[str] = frozenset()
    refused: Mapping[str, str] = field(default_factory=dict)
    altered: tuple[Altered, ...] = ()
    run: str = ""
    store: str = ""
    measured: Mapping[str, str] = field(default_factory=dict)
    strict: bool = False
    described: Mapping[str, RuleText] = field(default_factory=dict)
    baseline: bool = False
    gone: int = 0
    overruns: tuple[Overrun, ...] = ()
    ran: tuple[str, ...] = ()

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All findings, neither suppressed nor known: first what is reached most often, then by file and place."""
        return self._in_order(known=False)

    @cached_property
    def known(self) -> tuple[Entry, ...]:
        """The findings that a baseline has, in the same order."""
        return self._in_order(known=True)

    def _in_order(self, known: bool) -> tuple[Entry, ...]:
        found = (entry for result in self.results for entry in self._entries_of(result, known))
        return tuple(sorted(found, key=lambda entry: entry.reported.rarity))

    def entries_of(self, result: FileResult) -> list[Entry]:
        """The findings of one file: first what compiled code reaches most often, then by line and column."""
        return self._entries_of(result, known=False)

    def _entries_of(self, result: FileResult, known: bool) -> list[Entry]:
        if result.patch is None:
            return []
        path, patch = result.path, result.patch
        if path in self.written:
            found = [Entry(path, item, "fixed") for item in patch.fixed if not item.suppressed]
            found += [Entry(path, item, self._status(item)) for item in patch.remaining if not item.suppressed]
        else:
            found = [Entry(path, item, self._status(item)) for item in patch.found if not item.suppressed]
        items = ((entry, entry.reported) for entry in found if entry.reported.known is known)
        return [e for e, item in sorted(items, key=lambda x: (x[1].rarity, x[1].line, x[1].column, x[1].code))]

    def error_of(self, result: FileResult) -> str:
        """Why the file could not be read, patched or written, in one line, or nothing."""
        return result.error or self.refused.get(result.path, "")

    @property
    def failed(self) -> bool:
        """Whether anything went wrong that the user must hear of: a file, or a rule of ours."""
        return any(self.error_of(result) or result.bugs for result in self.results)

    @property
    def to_fix(self) -> bool:
        """Whether ``--verify-only`` has something to complain about."""
        altered = self.strict and bool(self.altered)
        return altered or bool(self.overruns) or any(entry.status == "fixable" for entry in self.entries)

    @cached_property
    def looked_at(self) -> tuple[FileResult, ...]:
        """The results of what was worked on, paths that could not be included."""
        return tuple(result for result in self.results if not result.beside and not result.other)

    @property
    def beside(self) -> int:
        """How many tests, examples and scripts were read only."""
        return sum(result.beside for result in self.results)

    @property
    def not_compiled(self) -> int:
        """How many functions were left alone because nothing compiles them, as far as the source tells."""
        return sum(result.not_compiled for result in self.looked_at)

    @property
    def suppressed(self) -> int:
        """Findings that comments in the source have silenced."""
        return sum(result.patch.suppressed for result in self.results if result.patch)

    def count(self, *statuses: Status) -> int:
        """How many findings have one of these statuses."""
        return sum(entry.status in statuses for entry in self.entries)

    def _status(self, item: Reported) -> Status:
        if item.applicability == "safe" or (item.applicability == "unsafe" and self.unsafe):
            return "fixable"
        return "unsafe" if item.applicability == "unsafe" else "no-fix"
