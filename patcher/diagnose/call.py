"""What the call ``diagnose`` does and says: measure, report, and with ``--prove`` write what was proven."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher import atomic
from patcher.analysis import Analysis
from patcher.backup import BackupError, project_root
from patcher.calls import FAILURE, FINDINGS, INTERRUPTED, OK, Told
from patcher.diagnose import latest
from patcher.diagnose.diagnosing import Diagnosed, Wanted, diagnose, imported
from patcher.diagnose.diagnosis import Diagnosis, Proof
from patcher.diagnose.diagnostics import TUNE
from patcher.harness.carried import CarriedError, load
from patcher.harness.measured import CaseResult, ResultsError, from_json
from patcher.harness.plan import PlanError
from patcher.harness.run import Progress, RunError
from patcher.measure import Request, exported, installed, need_torch, options_for
from patcher.report import Outcome
from patcher.report.diagnosis_html import diagnosis_html
from patcher.report.diagnosis_json import diagnosis_json
from patcher.report.diagnosis_markdown import diagnosis_markdown
from patcher.report.fitted import fitted
from patcher.results import FileResult
from patcher.settings import Settings

FORMATS: Mapping[str, Callable[[Diagnosis], str]] = {
    "markdown": diagnosis_markdown,
    "json": diagnosis_json,
    "html": diagnosis_html,
}

_SHAPES: Mapping[str, Callable[[Diagnosis], str]] = {
    **FORMATS,
    "narrow": lambda diagnosis: fitted(diagnosis_markdown(diagnosis)),
}
_DRY = "nothing was changed, as --dry-run asks"
_INSTALLED = "nothing was changed, for installed packages are never patched in place"


@dataclass(frozen=True)
class Asked:
    """What the user asks of ``diagnose``, besides how to measure.

    ``strategies``: for each key the names to try when all are to be. ``command``: the call as typed. ``spelled``: a
    call with other options, for cases and paths of this one. ``prove_limit``: seconds after which ``prove`` tries
    nothing new. ``outputs``: files for the report with their formats;
    without any it goes to stdout, in ``format``, which may also be "narrow": for a terminal.
    """

    paths: tuple[str, ...]
    outputs: tuple[tuple[Path, str], ...]
    format: str
    only: tuple[str, ...]
    trace: str
    prove: bool
    strategies: dict[str, tuple[str, ...]]
    command: tuple[str, ...]
    spelled: Callable[[Sequence[str]], str]
    prove_limit: float | None = None


def report(
    analysis: Analysis,
    settings: Settings,
    request: Request,
    asked: Asked,
    progress: Progress | None,
    outcome: Callable[[tuple[FileResult, ...]], Outcome],
    write: Callable[[Outcome], Told] | None,
    say: Callable[[Sequence[str]], None] | None = None,
) -> Told:
    """Diagnose and report. ``say`` is told what is known first.

    ``write`` puts proven files on disk; None (``--dry-run``): nothing is written.

    Exit status: 0, also when there are causes; 1 when what was kept is not equivalent when measured at length; 2 when a
    case does not run, or another failure.
    """
    missing = [f"{file.path}: error: {file.error}" for file in analysis.first if file.error]
    if not analysis.files or any(not os.path.lexists(path) for path in asked.paths):
        return Told(FAILURE, err=(*missing, *([] if missing else ["no Python files found"])))
    unwritable = [line for file, _ in asked.outputs if (line := _why_not(file))]
    if unwritable:
        return Told(FAILURE, err=(*unwritable, "nothing was measured"))
    if write is not None and asked.prove:
        changed = [file.path for file in analysis.first if file.changed and not installed(file, request)]
        locked = [f"{path}: error: {why}; nothing was measured" for path in changed if (why := atomic.why_not(path))]
        if locked:
            return Told(FAILURE, err=tuple(locked))
    try:
        wanted = _wanted(analysis, request, asked, progress, say)
        if request.export is not None:
            return Told(OK, exported((), request, replace(wanted.options, memory=request.memory)))
        if request.imported is not None:
            diagnosed = imported(analysis, settings, wanted, from_json(load(request.imported)))
        else:
            need_torch(request.python)
            diagnosed = diagnose(analysis, settings, wanted)
    except KeyboardInterrupt:
        return Told(INTERRUPTED, err=("interrupted; nothing was changed",))
    except (RunError, CarriedError, ResultsError, PlanError, OSError) as error:
        return Told(FAILURE, err=(f"diagnose: error: {error} (your files are as they were)",))
    if not asked.only and diagnosed.ran and asked.paths:
        latest.keep(diagnosed.diagnosis, analysis.files, os.path.realpath(project_root(asked.paths[0])))
    status, diagnosed, last = _written(diagnosed, request, outcome, write if asked.prove else None)
    if not asked.prove:
        last = ()
    if not asked.outputs:
        return Told(status, _SHAPES[asked.format](diagnosed.diagnosis), last)
    tried = [_kept(file, FORMATS[format_](diagnosed.diagnosis)) for file, format_ in asked.outputs]
    tried += [_kept(file, text) for file, text in _graphs(diagnosed.diagnosis, [file for file, _ in asked.outputs])]
    errors = [line for line in tried if line]
    written = "".join(f"{file}\n" for file, _ in asked.outputs)
    if errors:  # it took long to make
        written = _SHAPES[asked.format](diagnosed.diagnosis)
    told = () if asked.only else _summary(diagnosed.diagnosis)
    return Told(FAILURE if errors else status, written, (*told, *errors, *last))


def _why_not(file: Path) -> str:
    """Why a report cannot be written there, in one line; "" when it can."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8"):
            return ""
    except OSError as error:
        return f"{file}: error: {error.strerror}"


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
    only = (*asked.only, TUNE) if request.tune and not asked.prove else asked.only
    options = options_for(analysis.first, request, asked.paths, asked.command)
    if options.tune is not None:
        options = replace(options, tune=replace(options.tune, alone=asked.prove or only == (TUNE,)))
    return Wanted(
        cases=request.cases,
        options=options,
        python=request.python,
        only=only,
        trace=asked.trace,
        prove=asked.prove,
        prove_limit=asked.prove_limit,
        strategies=asked.strategies,
        tolerance=request.tolerance,
        command=shlex.join(asked.command),
        spelled=asked.spelled,
        progress=progress,
        count_first=request.backend is None,  # else it is done as asked
        say=say,
    )


def _written(
    diagnosed: Diagnosed,
    request: Request,
    outcome: Callable[[tuple[FileResult, ...]], Outcome],
    write: Callable[[Outcome], Told] | None,
) -> tuple[int, Diagnosed, tuple[str, ...]]:
    """Put the proven files on disk; the status, the report with how to take them back, and lines for stderr."""
    proof = diagnosed.diagnosis.proof
    changed = any(file.changed for file in diagnosed.files)
    kept = changed or bool(proof and proof.to_write)
    status = FINDINGS if proof is not None and proof.judgement is not None and not kept else OK
    if not diagnosed.ran:
        status = FAILURE
    files = tuple(file for file in diagnosed.files if file.changed and not installed(file, request))
    if proof is None or not files:
        if proof is None:
            return status, diagnosed, ()
        if any(file.changed for file in diagnosed.files):
            proof = replace(proof, ending=f"{proof.ending}; {_INSTALLED}")
        return status, _with_proof(diagnosed, proof), (proof.ending,)
    if write is None:
        return status, _with_proof(diagnosed, replace(proof, ending=f"{proof.ending}; {_DRY}")), (_DRY,)
    try:
        told = write(outcome(files))
    except BackupError as error:
        return FAILURE, diagnosed, (f"error: {error}",)
    said = [line for line in str(told.out).splitlines() if " restore" in line]
    proof = replace(proof, restore=said[-1].partition(": ")[2] if said else "")
    return max(status, told.status), _with_proof(diagnosed, proof), (proof.ending, *told.err, *said[-1:])


def _with_proof(diagnosed: Diagnosed, proof: Proof) -> Diagnosed:
    return replace(diagnosed, diagnosis=replace(diagnosed.diagnosis, proof=proof))


def _cases(diagnosis: Diagnosis) -> Sequence[CaseResult]:
    return diagnosis.results.cases if diagnosis.results else ()


def _summary(diagnosis: Diagnosis) -> tuple[str, ...]:
    """A line about the report that went to a file."""
    if not any(one.figures for case in _cases(diagnosis) for one in case.variants if one.kind == "compiled"):
        return diagnosis.problems
    counts = [f"{n} {s}" for s in ("high", "medium", "low") if (n := sum(c.severity == s for c in diagnosis.causes))]
    return (f"{len(diagnosis.causes)} causes ({', '.join(counts)})" if counts else "no causes", *diagnosis.problems)
