"""What ``check`` compares the findings with before it tells of them: a revision, and a file of those that are known."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.config import Config, ConfigError
from patcher.files import baseline
from patcher.files.backup import Store
from patcher.files.baseline import BaselineError
from patcher.files.changed_lines import DiffBaseError, changed_lines, on_changed_lines
from patcher.harness.processes import Progress
from patcher.measuring.budget import BudgetError, LockError, compared, recorded
from patcher.measuring.measure import Request
from patcher.patching.calls import FAILURE, INTERRUPTED, OK, Told, complaints, shown, verify
from patcher.report import Outcome

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
