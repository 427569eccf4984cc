"""What `integrate` has to say, and the writing of it, whole or not at all. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from patcher.files import backup
from patcher.files.backup import Store
from patcher.files.restore import restore
from patcher.files.source import shown as relative
from patcher.integrate.integrating import Integration
from patcher.integrate.remarks import Remark
from patcher.patching.calls import FAILURE, FINDINGS, INTERRUPTED, OK, Told, store_options
from patcher.report.diff import coloured, file_diff
from patcher.results import FileResult
from patcher.version import VERSION


def shown(outcome: Integration, quiet: bool, colour: bool) -> Told:
    """The diff of all that would be written, or why there is none."""
    if outcome.failed:
        return Told(FAILURE, err=(*(f"{f.path}: error: {f.error}" for f in outcome.failed), "nothing was changed"))
    if outcome.plan.refused:
        lines = [_line(remark) for remark in outcome.plan.refused]
        return Told(FINDINGS, "".join(f"{line}\n" for line in lines), () if quiet else ("nothing was changed",))
    if outcome.plan.done:
        return Told(OK, err=() if quiet else ("integrated already: nothing to do",))
    diff = b"".join(file_diff(result, _name(result)) for result in outcome.results)
    said = () if quiet else tuple(_line(remark) for remark in outcome.plan.told)
    return Told(OK, coloured(diff) if colour else diff, said)


def write_down(outcome: Integration, store: Store | None, options: Sequence[str], program: str, quiet: bool) -> Told:
    """Write it; where one of the files cannot be written, none is. Raises ``BackupError``."""
    applied = backup.apply(outcome.results, store, VERSION, options, outcome.needed)
    if applied.refused or applied.interrupted:
        errors = [f"{path}: error: {why}" for path, why in applied.refused]
        if store is not None and applied.run:
            restore(store, applied.run)
            errors.append("nothing was changed")
        return Told(INTERRUPTED if applied.interrupted else FAILURE, err=tuple(errors))
    lines = [_line(remark) for remark in outcome.plan.told]
    lines += [f"{relative(Path(result.path))}: written" for result in outcome.results if result.created]
    files = f"{len(applied.written)} file{'' if len(applied.written) == 1 else 's'}"
    said = [f"{files} written"]
    if store is not None:
        said = [f"{files} written; to take them back: {program} restore{store_options(store)} {applied.run}"]
    return Told(OK, "" if quiet else "".join(f"{line}\n" for line in [*lines, *said]))


def _line(remark: Remark) -> str:
    path = relative(Path(remark.path))
    return f"{path}:{remark.line}: {remark.message}" if remark.line else f"{path}: {remark.message}"


def _name(result: FileResult) -> str:
    return relative(Path(result.path))
