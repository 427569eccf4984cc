"""What the call ``diagnose`` does and says: measure and report."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from patcher.diagnose import latest
from patcher.diagnose.bench import State
from patcher.diagnose.diagnosing import Diagnosed, Wanted, Whole, diagnose
from patcher.diagnose.diagnosis import SEVERITIES, Diagnosis
from patcher.diagnose.events import seen_in
from patcher.diagnose.places import Places
from patcher.files.backup import project_root
from patcher.harness.compare import Judgement
from patcher.harness.measured import ResultsError, from_json
from patcher.harness.processes import RunError, usual_variables
from patcher.harness.run import HERE, SCHEMA
from patcher.measuring.measure import need_torch
from patcher.patching.analysis import Analysis
from patcher.patching.calls import FAILURE, INTERRUPTED, OK, Told
from patcher.report.diagnosis_json import diagnosis_json
from patcher.report.diagnosis_markdown import diagnosis_markdown
from patcher.report.fitted import fitted
from patcher.report.page import page
from patcher.report.recommending import ran_compiled
from patcher.settings import Settings
from patcher.version import VERSION
from patcher.words import many

_SECONDS = 600


def logged(analysis: Analysis, settings: Settings, wanted: Wanted, log: Path) -> Diagnosed:
    """Return the causes in ``log``, with fixes as diffs: a text of ``TORCH_LOGS``, or a folder of ``TORCH_TRACE``.

    Raises ``RunError`` where it cannot be read, or holds no break, recompile or skip.
    """
    places = Places(analysis.files, wanted.options.base, ())
    figures = _figures(wanted.python, log, [places.shown(path) for path in analysis.files])
    files = figures.pop("files")
    if not files or not any(figures["counts"].values()):
        raise RunError(
            f"{log}: no graph break, recompile or skip is logged there; run the program with"
            ' TORCH_LOGS="graph_breaks,recompiles,cudagraphs", or with TORCH_TRACE=FOLDER'
        )
    variants = [
        {"tree": "original", "kind": "eager", "mode": None, "status": "skipped"},
        {"tree": "original", "kind": "compiled", "mode": "default", "status": "ok", **figures},
    ]
    case = {"name": log.name, "tolerance": 1e-3, "variants": variants, "comparisons": []}
    plan = {"tool": VERSION, "command": [], "modes": ["default"], "backend": "inductor", "quick": True}
    plan = {**plan, "overlay": [], "promise": "bitwise"}
    results = from_json(
        {"schema": SCHEMA, "plan": plan, "environment": {}, "started": "", "seconds": 0.0, "cases": [case]}
    )
    seen = seen_in(results.cases[0], "original", "default", {})
    state = State((), results, Judgement(()), (seen,) if seen else (), ())
    whole = Whole(analysis, settings, wanted, places, state)
    told = whole.diagnosis(whole.causes())
    started = datetime.fromtimestamp(log.stat().st_mtime, timezone.utc).isoformat(timespec="seconds")
    facts = (f"read from {log}; nothing was run, so times and launches are not known",)
    return Diagnosed(replace(told, facts=facts, started=started, results=None, diagnostics=()))


def _figures(python: str, log: Path, files: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fix-compile-") as folder:
        spec = Path(folder, "spec.json")
        spec.write_text(json.dumps({"log": str(log.resolve()), "files": files}), encoding="utf-8")
        command = [python, str(HERE / "logs.py"), str(spec)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=usual_variables()
            )
            figures: dict[str, Any] = json.loads(done.stdout)
        except (OSError, subprocess.TimeoutExpired, ValueError):
            raise RunError(f"{log}: cannot be read by {python}") from None
    return figures


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


def report(
    analysis: Analysis,
    settings: Settings,
    wanted: Wanted,
    paths: Sequence[str],
    outputs: Sequence[tuple[Path, str]],
    shape: str,
    log: Path | None = None,
) -> Told:
    """Diagnose and report: into the files ``outputs``, each with its format, without any to stdout in ``shape``.

    ``log``: what torch has logged, to be read in the place of a run. Exit status: 0, also when there are causes; 2 when
    a case does not run, or another failure.
    """
    missing = [f"{file.path}: error: {file.error}" for file in analysis.first if file.error]
    if not analysis.files or any(not os.path.lexists(path) for path in paths):
        return Told(FAILURE, err=(*missing, *([] if missing else ["no Python files found"])))
    if unwritable := [line for file, _ in outputs if (line := why_not(file))]:
        return Told(FAILURE, err=(*unwritable, "nothing was measured"))
    try:
        need_torch(wanted.python)
        found = logged(analysis, settings, wanted, log) if log else diagnose(analysis, settings, wanted)
    except KeyboardInterrupt:
        return Told(INTERRUPTED, err=("interrupted; nothing was changed",))
    except (RunError, ResultsError, OSError) as error:
        return Told(FAILURE, err=(f"diagnose: error: {error} (your files are as they were)",))
    if not wanted.only and found.ran and paths:
        latest.keep(found.diagnosis, analysis.files, os.path.realpath(project_root(paths[0])))
    return _told(found.diagnosis, OK if found.ran else FAILURE, outputs, shape, () if wanted.only else None)


def _told(
    diagnosis: Diagnosis, status: int, outputs: Sequence[tuple[Path, str]], shape: str, said: tuple[str, ...] | None
) -> Told:
    """The report where it is wanted; on stdout too where a file cannot be written: it took long to make."""
    if not outputs:
        return Told(status, _SHAPES[shape](diagnosis))
    texts = [(file, FORMATS[format_](diagnosis)) for file, format_ in outputs]
    texts += _graphs(diagnosis, [file for file, _ in outputs])
    errors = [line for file, text in texts if (line := _kept(file, text))]
    out = _SHAPES[shape](diagnosis) if errors else "".join(f"{file}\n" for file, _ in outputs)
    return Told(FAILURE if errors else status, out, (*(_summary(diagnosis) if said is None else said), *errors))


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


def _summary(diagnosis: Diagnosis) -> tuple[str, ...]:
    """A line about the report that went to a file."""
    if not (ran_compiled(diagnosis.results) or diagnosis.causes):
        return diagnosis.problems
    counts = [f"{n} {s}" for s in SEVERITIES if (n := sum(c.severity == s for c in diagnosis.causes))]
    causes = many(len(diagnosis.causes), "cause")
    return (f"{causes} ({', '.join(counts)})" if counts else "no causes", *diagnosis.problems)
