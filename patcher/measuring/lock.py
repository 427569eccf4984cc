"""What compiling may cost: a budget for each case and test, and the file that holds them. Standard library alone.

It is loaded by itself where tests run (``fix_compile_pytest.py``).
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "fix-compile.lock"
SCHEMA = 1
#: What may not rise, in the order in which it is told. What is given up (frames that are dropped, limits that are hit)
#: breaks no more.
KINDS = ("breaks", "recompiles", "graphs", "dropped_frames", "limit_hits", "cudagraph_skips")
_LOST = 10  # operators that may be in no graph any more, whatever their share


class LockError(Exception):
    """A lock that is none, or cannot be read or written; the message is one line."""


@dataclass(frozen=True)
class Event:
    """A break, a recompile and so on: where (``file:line``, the innermost ``function``), why, how often."""

    kind: str
    where: str
    function: str
    reason: str
    count: int = 1

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is known by, whatever its line. Guards tell sizes, which are others each time."""
        reason = "" if self.kind in ("recompiles", "limit_hits") else self.reason
        return (self.kind, self.where.rpartition(":")[0], self.function, reason)


@dataclass(frozen=True)
class Budget:
    """What was counted. ``counts``: by the words of `KINDS`; ``operators``: in graphs, in one pass over all calls.

    ``torch``, ``backend``, ``mode``: how. ``case``, ``paths``: of a case, relative to the folder of the lock.
    """

    counts: Mapping[str, int]
    operators: int
    events: tuple[Event, ...] = ()
    torch: str = ""
    backend: str = ""
    mode: str = "default"
    case: str = ""
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Excess:
    """One figure that is beyond the budget: ``what``, as it was and is now, and the events that are new."""

    what: str
    was: int
    now: int
    events: tuple[Event, ...] = ()

    def __str__(self) -> str:
        less = ": less is compiled" if self.what == "operators" else ""
        return f"{self.what.replace('_', ' ')} {self.was} -> {self.now}{less}"


@dataclass(frozen=True)
class Lock:
    """All budgets: of cases by their name, of tests by their id."""

    cases: Mapping[str, Budget] = field(default_factory=dict)
    tests: Mapping[str, Budget] = field(default_factory=dict)


def beyond(was: Budget, now: Budget) -> list[Excess]:
    """What has risen, and whether much less gets into graphs: that is no success, whatever else has fallen."""
    known = Counter({event.key: 0 for event in was.events})
    for event in was.events:
        known[event.key] += event.count
    seen: Counter[tuple[str, str, str, str]] = Counter()
    for event in now.events:
        seen[event.key] += event.count
    new = [event for event in now.events if seen[event.key] > known[event.key]]
    found = [
        Excess(kind, was.counts.get(kind, 0), now.counts.get(kind, 0), tuple(e for e in new if e.kind == kind))
        for kind in KINDS
        if now.counts.get(kind, 0) > was.counts.get(kind, 0)
    ]
    if was.operators - now.operators >= _LOST and 2 * now.operators < was.operators:
        found.append(Excess("operators", was.operators, now.operators))
    return found


def told(name: str, excess: Sequence[Excess]) -> list[str]:
    """Lines for people: what is beyond the budget of ``name``, and where."""
    lines = []
    for one in excess:
        lines.append(f"{name}: {one}")
        for event in one.events:
            inside = f" (in {event.function})" if event.function else ""
            lines.append(
                f"  {event.where or 'somewhere'}: {event.reason}{inside}" + f", {event.count} times" * (event.count > 1)
            )
    return lines


def read(file: Path) -> Lock:
    """The budgets in ``file``; none when it is not there. Raises ``LockError``."""
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError:
        return Lock()
    except OSError as error:
        raise LockError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise LockError(f"{file}: is no lock: no JSON") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise LockError(f"{file}: is no lock of this version (schema {SCHEMA})")
    try:
        kinds = (
            {name: _budget(entry) for name, entry in document.get(kind, {}).items()} for kind in ("cases", "tests")
        )
        return Lock(*kinds)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LockError(f"{file}: is damaged; remove it and record the budgets anew") from None


def write(file: Path, lock: Lock) -> None:
    """Replace the file as a whole, unless it holds the same. Raises ``LockError``."""
    kinds = {"cases": lock.cases, "tests": lock.tests}
    document = {"schema": SCHEMA} | {
        kind: {name: _entry(budgets[name]) for name in sorted(budgets)} for kind, budgets in kinds.items() if budgets
    }
    data = (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8")
    part = file.with_name(f"{file.name}.{secrets.token_hex(4)}.tmp")
    try:
        if file.exists() and file.read_bytes() == data:
            return
        part.write_bytes(data)
        os.replace(part, file)  # noqa: PTH105 - as everywhere: one call that is atomic
    except OSError as error:
        part.unlink(missing_ok=True)
        raise LockError(f"{file}: cannot be written: {error.strerror}") from None


def _entry(budget: Budget) -> dict[str, Any]:
    of_case = {"case": budget.case, "paths": list(budget.paths)} if budget.case else {}
    how = {"torch": budget.torch, "backend": budget.backend, "mode": budget.mode}
    counts = {kind: budget.counts.get(kind, 0) for kind in KINDS}
    events = [
        {"kind": e.kind, "where": e.where, "function": e.function, "reason": e.reason, "count": e.count}
        for e in budget.events
    ]
    return {**of_case, **how, **counts, "operators": budget.operators, **({"events": events} if events else {})}


def _budget(entry: Mapping[str, Any]) -> Budget:
    return Budget(
        counts={kind: int(entry[kind]) for kind in KINDS},
        operators=int(entry["operators"]),
        events=tuple(
            Event(str(e["kind"]), str(e["where"]), str(e["function"]), str(e["reason"]), int(e["count"]))
            for e in entry.get("events", ())
        ),
        torch=str(entry["torch"]),
        backend=str(entry["backend"]),
        mode=str(entry["mode"]),
        case=str(entry.get("case", "")),
        paths=tuple(map(str, entry.get("paths", ()))),
    )
