"""What the calls do once the files are analysed, and what they have to say. Nothing is printed here."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.config import Config, load
from patcher.files import backup
from patcher.files.backup import Manifest, Store
from patcher.files.restore import Restored, altered
from patcher.files.source import shown
from patcher.report import REPORTS, Outcome
from patcher.report.diff import coloured, file_diff
from patcher.report.text import line, measurements, summary
from patcher.results import Bug, FileResult, blamed, is_own_code
from patcher.run.program import no_notebook

OK, FINDINGS, FAILURE, INTERRUPTED = 0, 1, 2, 130

_NOT_RUN = "nothing was run; fix-compile diagnose runs your model and shows where it breaks"


@dataclass(frozen=True)
class Told:
    """The end of a call: its exit status, what goes to stdout (bytes: a diff, as it is), and lines for stderr."""

    status: int
    out: str | bytes = ""
    err: tuple[str, ...] = ()


def store_for(path: str, config: Config, backup_dir: str | None) -> Store:
    """The store for ``path``: the option, else the configuration, else ``.fix-compile`` in its project."""
    if backup_dir:
        return Store(Path(backup_dir))
    if config.backup_dir is not None and config.root is not None:
        return Store(config.root / config.backup_dir)
    return Store(backup.project_root(path) / backup.STORE_NAME)


def apply(outcome: Outcome, store: Store | None, options: Sequence[str], format_: str, program: str) -> Told:
    """Write the patches; raises ``BackupError`` when the originals cannot be saved, before anything is written."""
    applied = backup.apply(outcome.results, store, outcome.version, options)
    outcome = replace(
        outcome,
        written=frozenset((*applied.written, *applied.already)),
        refused=dict(applied.refused),
        run=applied.run,
        store=shown(store.folder) if store else "",
    )
    said: list[str] = []
    if applied.written and store:
        files = f"{len(applied.written)} file{'s' if len(applied.written) > 1 else ''}"
        said.append(
            f"{files} patched; to put the originals back: {program} restore{store_options(store)} {applied.run}"
        )
    said += _more(outcome, format_)
    status = FAILURE if outcome.failed else OK
    errors = list(complaints(outcome))
    if applied.interrupted:
        left = sum(result.changed for result in outcome.results) - len(outcome.written) - len(outcome.refused)
        errors.append(f"interrupted: {len(outcome.written)} files were patched, {left} were not and are as they were")
        errors += said if outcome.quiet else []
        status = INTERRUPTED
    return _with_summary(outcome, status, REPORTS[format_](outcome), errors, said, format_ == "text")


def dry_run(outcome: Outcome, format_: str, colour: bool) -> Told:
    """The diff of all changes (as text), or a report."""
    out: str | bytes = REPORTS[format_](outcome)
    base, elsewhere = _base(outcome)
    if format_ == "text":
        diff = b"".join(file_diff(result, _below(base, result.path)) for result in outcome.results if result.changed)
        out = coloured(diff) if colour else diff
    chosen = [line(entry) for entry in outcome.entries if entry.reported.strategy] if format_ == "text" else []
    told = [*complaints(outcome), *([] if outcome.quiet else chosen)]
    more = [*_more(outcome, format_), *([elsewhere] if format_ == "text" else [])]
    return _with_summary(outcome, FAILURE if outcome.failed else OK, out, told, list(filter(None, more)), False)


def _more(outcome: Outcome, format_: str) -> list[str]:
    """Where to read about the findings that this call does not list, and what selftest has shown of all."""
    if format_ != "text":
        return []
    listed = outcome.count("unsafe", "no-fix")
    more = ["check also lists what has no safe fix"] if listed else []
    return [*more, *measurements(outcome)]


def verify(outcome: Outcome, store: Store, paths: Sequence[str], format_: str, program: str) -> Told:
    """What is still to fix, and the patched files below ``paths`` that were altered since."""
    changed = tuple(replace(item, path=shown(item.path)) for item in altered(store, paths))
    outcome = replace(outcome, altered=changed)
    said = measurements(outcome) if format_ == "text" else []
    if changed and format_ == "text":
        runs = dict.fromkeys(item.run for item in changed)
        said += [f"to hear no more of it: {program} forget{store_options(store)} {run}" for run in runs]
    if format_ == "text" and outcome.entries:
        said.append(f"more of a rule: {program} rules {outcome.entries[0].reported.code}")
    if format_ == "text" and outcome.count("fixable"):
        given = shlex.join(paths) if 0 < len(paths) <= 3 else "PATH"
        said.append(f"the changes: {program} diff {given}; to make them: {program} fix {given}")
    status = FAILURE if outcome.failed else FINDINGS if outcome.to_fix else OK
    report = REPORTS[format_](outcome)
    return _with_summary(outcome, status, report, list(complaints(outcome)), said, format_ == "text")


def told_of(restored: Restored, quiet: bool) -> Told:
    """What ``restore`` has done."""
    lines = [f"{shown(path)}: restored" for path in restored.restored]
    lines += [f"{shown(path)}: left, run {run} uses it too" for path, run in restored.shared]
    lines += [f"your edited version is kept in {shown(path)}" for path in restored.kept]
    total = len(restored.restored) + len(restored.already)
    if restored.refused:
        lines.append(f"run {restored.run}: {len(restored.refused)} of {total + len(restored.refused)} files left alone")
    else:
        lines.append(
            f"run {restored.run}: {len(restored.restored)} restored, {len(restored.already)} were original already"
        )
    errors = tuple(f"{shown(path)}: error: {why}" for path, why in restored.refused)
    out = "" if quiet else "".join(line + "\n" for line in lines)
    return Told(FAILURE if restored.refused else OK, out, errors)


def filtered(outcome: Outcome, data: bytes, format_: str) -> Told:
    """Standard input, ``data``, with its fixes made goes to standard output, what there is to say to stderr."""
    (result,) = outcome.results
    outcome = replace(outcome, written=frozenset({result.path} if result.changed else ()))
    told = [part for part in REPORTS[format_](outcome).splitlines() if not outcome.quiet]
    status = FAILURE if outcome.failed else OK
    out = b"" if result.error else result.after if result.changed else data
    return _with_summary(outcome, status, out, [*complaints(outcome), *told], [], False)


def forgotten(manifest: Manifest, quiet: bool) -> Told:
    """What ``forget`` has done."""
    files = f"{len(manifest.files)} file{'' if len(manifest.files) == 1 else 's'}"
    return Told(OK, "" if quiet else f"run {manifest.run} is forgotten, with the originals of {files}\n")


def complaints(outcome: Outcome) -> list[str]:
    """One line for each file that could not be handled, and for each rule that did not do its work."""
    lines = []
    for result in outcome.results:
        error = outcome.error_of(result)
        if error:
            lines.append(f"{result.path}: error: {error}")
        lines += [_of_bug(result, bug) for bug in result.bugs if _is_ours(bug)]
    foreign: dict[str, list[str]] = {}
    for result in outcome.results:  # one rule of another package fails again and again: that is told once
        for bug in sorted(result.bugs, key=lambda bug: bug.line):
            if not _is_ours(bug):
                foreign.setdefault(bug.code, []).append(_of_bug(result, bug))
    for told in foreign.values():
        more = len(told) - 1
        lines.append(told[0] + (f" (and in {more} more place{'s' if more > 1 else ''})" if more else ""))
    return [" ".join(line.splitlines()) for line in lines]


def _is_ours(bug: Bug) -> bool:
    return is_own_code(bug.code) or bug.code == "engine"


def _of_bug(result: FileResult, bug: Bug) -> str:
    return f"{result.path}:{bug.line}: internal error in {bug.code}, {blamed(bug.code)}: {bug.message}"


def _with_summary(
    outcome: Outcome, status: int, out: str | bytes, errors: list[str], said: list[str], to_stdout: bool
) -> Told:
    if outcome.quiet:
        return Told(status, out, tuple(errors))
    other = [result.path for result in outcome.results if result.other]
    errors += [no_notebook(path) or f"{path}: passed over, for it is no Python" for path in other]
    if all(result.other for result in outcome.results):
        errors.append("no Python files found")
    unrun = [_NOT_RUN] if outcome.looked_at and not outcome.entries and not outcome.failed and not outcome.ran else []
    said = [summary(outcome), *unrun, *outcome.ran, *said]
    if to_stdout and isinstance(out, str):
        return Told(status, out + "".join(line + "\n" for line in said), tuple(errors))
    return Told(status, out, (*errors, *said))


def store_options(store: Store) -> str:
    """What ``restore`` needs to be told from here to find the store."""
    if store_for(os.curdir, load(os.curdir), None).folder == store.folder:
        return ""
    return f" --backup-dir {shlex.quote(shown(store.folder))}"


def _base(outcome: Outcome) -> tuple[Path, str]:
    """The folder that the paths of a diff start from, and a line that says so where it is not the working folder."""
    changed = [Path(os.path.realpath(result.path)) for result in outcome.results if result.changed]
    here = Path(os.path.realpath(os.curdir))
    if all(path.is_relative_to(here) for path in changed):
        return here, ""
    root = Path(os.path.realpath(backup.project_root(str(changed[0]))))
    if not all(path.is_relative_to(root) for path in changed):
        root = Path(os.path.commonpath([path.parent for path in changed]))
    return root, f"the paths of this diff start in {shlex.quote(str(root))}: apply it there"


def _below(base: Path, path: str) -> str:
    """The real file's path for the header of a diff: relative where ``git apply`` can follow it."""
    real = Path(os.path.realpath(path))
    return str(real.relative_to(base)) if real.is_relative_to(base) else str(real)
