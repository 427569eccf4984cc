"""What the call ``diagnose`` does and says: measure and report."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patcher.diagnose import latest
from patcher.diagnose.diagnosing import Wanted, diagnose
from patcher.diagnose.diagnosis import Diagnosis
from patcher.diagnose.logged import logged
from patcher.files.backup import project_root
from patcher.harness.measured import CaseResult, ResultsError
from patcher.harness.processes import Progress, RunError
from patcher.measuring.measure import Request, need_torch, options_for
from patcher.patching.analysis import Analysis
from patcher.patching.calls import FAILURE, INTERRUPTED, OK, Told
from patcher.report.diagnosis_json import diagnosis_json
from patcher.report.diagnosis_markdown import diagnosis_markdown
from patcher.report.fitted import fitted
from patcher.report.page import page
from patcher.settings import Settings

FORMATS: Mapping[str, Callable[[Diagnosis], str]] = {
    "markdown": diagnosis_markdown,
    "json": diagnosis_json,
    "html": lambda diagnosis: page(diagnosis_markdown(diagnosis), f"{diagnosis.title}: diagnosis"),
}

_SHAPES: Mapping[str, Callable[[Diagnosis], str]] = {
    **FORMATS,
    "narrow": lambda diagnosis: fitted(diagnosis_markdown(diagnosis)),
}


def format_of(file: Path) -> str:
    """Return the format of a report, by the ending of its file."""
    return {".html": "html", ".htm": "html", ".json": "json"}.get(file.suffix.lower(), "markdown")


@dataclass(frozen=True)
class Asked:
    """What the user asks of ``diagnose``, besides how to measure.

    ``command``: the call as typed. ``verify``: the command that shows what the fixes of rules with these codes do.
    ``outputs``: files for the report with their formats; without any it goes to stdout, in ``format``, which may also
    be "narrow": for a terminal. ``log``: what torch has logged, to be read in the place of a run.
    """

    paths: tuple[str, ...]
    outputs: tuple[tuple[Path, str], ...]
    format: str
    only: tuple[str, ...]
    trace: str
    command: tuple[str, ...]
    verify: Callable[[Sequence[str], bool], str]
    log: Path | None = None


def report(
    analysis: Analysis,
    settings: Settings,
    request: Request,
    asked: Asked,
    progress: Progress | None,
    say: Callable[[Sequence[str]], None] | None = None,
) -> Told:
    """Diagnose and report. ``say`` is told what is known first.

    Exit status: 0, also when there are causes; 2 when a case does not run, or another failure.
    """
    missing = [f"{file.path}: error: {file.error}" for file in analysis.first if file.error]
    if not analysis.files or any(not os.path.lexists(path) for path in asked.paths):
        return Told(FAILURE, err=(*missing, *([] if missing else ["no Python files found"])))
    unwritable = [line for file, _ in asked.outputs if (line := why_not(file))]
    if unwritable:
        return Told(FAILURE, err=(*unwritable, "nothing was measured"))
    try:
        need_torch(request.python)
        wanted = _wanted(analysis, request, asked, progress, say)
        diagnosed = logged(analysis, settings, wanted, asked.log) if asked.log else diagnose(analysis, settings, wanted)
    except KeyboardInterrupt:
        return Told(INTERRUPTED, err=("interrupted; nothing was changed",))
    except (RunError, ResultsError, OSError) as error:
        return Told(FAILURE, err=(f"diagnose: error: {error} (your files are as they were)",))
    if not asked.only and diagnosed.ran and asked.paths:
        latest.keep(diagnosed.diagnosis, analysis.files, os.path.realpath(project_root(asked.paths[0])))
    status = OK if diagnosed.ran else FAILURE
    if not asked.outputs:
        return Told(status, _SHAPES[asked.format](diagnosed.diagnosis))
    tried = [_kept(file, FORMATS[format_](diagnosed.diagnosis)) for file, format_ in asked.outputs]
    tried += [_kept(file, text) for file, text in _graphs(diagnosed.diagnosis, [file for file, _ in asked.outputs])]
    errors = [line for line in tried if line]
    written = "".join(f"{file}\n" for file, _ in asked.outputs)
    if errors:  # it took long to make
        written = _SHAPES[asked.format](diagnosed.diagnosis)
    told = () if asked.only else _summary(diagnosed.diagnosis)
    return Told(FAILURE if errors else status, written, (*told, *errors))


def why_not(file: Path) -> str:
    """Return why a report cannot be written there, in one line; "" when it can."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f"{file}: error: {error.strerror}"
    there = file if file.exists() else file.parent
    return "" if os.access(there, os.W_OK) and not file.is_dir() else f"{file}: error: cannot be written"


def _graphs(diagnosis: Diagnosis, outputs: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """The graphs of diagnostics as files, in a folder beside the report; reports of one name have one folder."""
    pairs = [pair for diagnostic in diagnosis.diagnostics for pair in diagnostic.graphs]
    for folder in dict.fromkeys(output.with_name(f"{output.stem}.graphs") for output in outputs):
        for pair in pairs:
            name = re.sub(r"[^\w.-]", "_", pair.name)
            yield folder / f"{name}.before.txt", pair.before + "\n"
            yield folder / f"{name}.after.txt", pair.after + "\n"


def _kept(file: Path, text: str) -> str:
    """Write a report; why it could not be written, in one line."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"{file}: error: {error.strerror}"
    return ""


def _wanted(
    analysis: Analysis,
    request: Request,
    asked: Asked,
    progress: Progress | None,
    say: Callable[[Sequence[str]], None] | None,
) -> Wanted:
    return Wanted(
        cases=request.cases,
        options=options_for(analysis.first, request, asked.paths, asked.command),
        python=request.python,
        only=asked.only,
        trace=asked.trace,
        tolerance=request.tolerance,
        command=shlex.join(asked.command),
        verify=asked.verify,
        progress=progress,
        count_first=request.backend is None,  # else it is done as asked
        say=say,
    )


def _cases(diagnosis: Diagnosis) -> Sequence[CaseResult]:
    return diagnosis.results.cases if diagnosis.results else ()


def _summary(diagnosis: Diagnosis) -> tuple[str, ...]:
    """A line about the report that went to a file."""
    ran = any(one.figures for case in _cases(diagnosis) for one in case.variants if one.kind == "compiled")
    if not (ran or diagnosis.causes):
        return diagnosis.problems
    counts = [f"{n} {s}" for s in ("high", "medium", "low") if (n := sum(c.severity == s for c in diagnosis.causes))]
    causes = "1 cause" if len(diagnosis.causes) == 1 else f"{len(diagnosis.causes)} causes"
    return (f"{causes} ({', '.join(counts)})" if counts else "no causes", *diagnosis.problems)
