"""Do one job: scan, test, diagnose or prove, and make a row of it."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from patcher.config import ConfigError
from patcher.config import load as configuration
from patcher.diagnose.diagnosing import Wanted, diagnose
from patcher.files.discover import Exclude
from patcher.files.kept import default_folder
from patcher.fleet.row import Job, Row, of
from patcher.fleet.told import diagnosed, measured, noisy, proved, scanned, tested
from patcher.harness import plan
from patcher.harness.cases import Case, CaseError
from patcher.harness.compare import judge
from patcher.harness.measured import Results, ResultsError, from_json
from patcher.harness.packages import PackageError, locate
from patcher.harness.processes import RunError
from patcher.harness.run import run
from patcher.harness.scratch import scratch
from patcher.measuring.measure import Request, need_torch, options_for
from patcher.options import settings_from
from patcher.patching.analysis import Analysis
from patcher.patching.runner import run as patched
from patcher.report.outcome import Outcome
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.search.call import searched
from patcher.selftest import measured as selftested
from patcher.settings import Settings
from patcher.version import VERSION

EXPECTED = (RunError, ResultsError, PackageError, CaseError, ConfigError, OSError)
_NOTED = 3  # files that could not be read, of those that are named


class Workshop:
    """Does jobs with these rules, and remembers what it has found in a model. Several threads may share one."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules, self._lock = tuple(rules), threading.Lock()
        self._found: dict[tuple[object, ...], Any] = {}

    def do(self, job: Job) -> Row:
        """The row of a job; what goes wrong is a row with the reason."""
        start = time.monotonic()
        try:
            row = self._scan(job) if job.do == "scan" else self._measure(job)
        except EXPECTED as error:
            row = of(job, "failed", str(error) or type(error).__name__)
        machine = platform.node() if job.do != "scan" else ""
        return replace(row, machine=row.torch and machine, seconds=round(time.monotonic() - start, 1))

    def _scan(self, job: Job) -> Row:
        outcome = self._outcome(job, fixes=False)
        if not outcome.looked_at:
            return of(job, "failed", "no Python files found")
        (answer, told), figures = scanned(outcome)
        return of(job, answer, told, figures=figures, notes=_complaints(outcome))

    def _measure(self, job: Job) -> Row:
        need_torch(job.model.wish.python)
        does = {"test": self._test, "diagnose": self._diagnose, "prove": self._prove}
        return does[job.do](job)

    def _test(self, job: Job) -> Row:
        outcome = self._outcome(job, fixes=True)
        options = self._options(job, outcome.results)
        with scratch() as folder:
            written = plan.write(folder, outcome.results, _cases(job), options)
            results = from_json(run(written, job.model.wish.python))
        changed = any(result.changed for result in outcome.results)
        answer, told = tested(results, judge(results, job.model.wish.tolerance) if changed else None)
        return of(
            job,
            answer,
            told,
            figures={**scanned(outcome)[1], **measured(results)},
            notes=_complaints(outcome),
            noise=noisy(results),
            **_place(results),
        )

    def _diagnose(self, job: Job) -> Row:
        analysis, settings = self._analysis(job)
        options = self._options(job, analysis.first)
        found = diagnose(
            analysis,
            settings,
            Wanted(
                cases=_cases(job),
                options=options,
                python=job.model.wish.python,
                tolerance=job.model.wish.tolerance,
                count_first=job.model.wish.backend is None,
            ),
        )
        (answer, told), figures = diagnosed(found)
        results = found.diagnosis.results
        place = _place(results) if results else {}
        return of(job, answer, told, figures=figures, notes=found.diagnosis.problems, **place)

    def _prove(self, job: Job) -> Row:
        analysis, settings = self._analysis(job)
        options, request = self._options(job, analysis.first), _request(job)
        found = searched(analysis, settings, request, options, job.do)
        (answer, told), figures = proved(found)
        place = {"torch": found.torch, "device": found.device, "measuring": found.seconds}
        return of(job, answer, told, figures=figures, **place)

    def _options(self, job: Job, results: Sequence[FileResult]) -> plan.Options:
        request = _request(job)
        options = options_for(results, request, job.model.paths, ("fix-compile", job.do, *job.model.paths))
        return replace(options, base=job.model.root)

    def _settings(self, job: Job) -> tuple[Settings, Exclude, bool]:
        config = configuration(job.model.paths[0])
        shown = selftested.measured(self._rules)
        settings = settings_from(self._rules, config, unsafe=job.model.wish.unsafe, measured=shown)
        return settings, Exclude(config.exclude, str(config.root or os.curdir)), config.all

    def _outcome(self, job: Job, fixes: bool) -> Outcome:
        """What the rules find, and with ``fixes`` the patched files too; the same for all cases of a model."""
        with self._lock:
            known = (job.model.paths, job.model.wish.unsafe, fixes)
            if known not in self._found:
                settings, exclude, every = self._settings(job)
                kept, paths = default_folder(), job.model.paths
                results = patched(paths, self._rules, settings, 1, None, exclude, fixes, kept, every)
                self._found[known] = Outcome(
                    "dry-run" if fixes else "verify-only",
                    tuple(results),
                    VERSION,
                    settings.target_torch,
                    settings.unsafe,
                )
            outcome: Outcome = self._found[known]
            return outcome

    def _analysis(self, job: Job) -> tuple[Analysis, Settings]:
        with self._lock:
            settings, exclude, _ = self._settings(job)
            return Analysis(job.model.paths, self._rules, settings, exclude, jobs=1), settings


def _cases(job: Job) -> tuple[Case, ...]:
    return (job.case,) if job.case else ()


def _request(job: Job) -> Request:
    wish = job.model.wish
    return Request(
        cases=_cases(job),
        python=wish.python,
        packages=_packages(job),
        modes=(job.mode,),
        backend=wish.backend,
        quick=wish.quick,
        seconds=wish.time_limit,
        memory=wish.memory_limit,
        tolerance=wish.tolerance,
    )


def _packages(job: Job) -> dict[str, Path]:
    package = job.model.package
    return {package: locate(package, job.model.wish.python)} if package else {}


def _place(results: Results) -> dict[str, Any]:
    place = results.environment
    return {"torch": place.torch, "device": place.device, "measuring": results.seconds}


def _complaints(outcome: Outcome) -> tuple[str, ...]:
    """The files that could not be handled, and rules that did not do their work."""
    wrong = [f"{Path(r.path).name}: {error}" for r in outcome.results if (error := outcome.error_of(r))]
    bugs = [f"bug in {bug.code}: {bug.message}" for r in outcome.results if r.patch for bug in r.patch.bugs]
    told = [*bugs, *wrong[:_NOTED]]
    return (*told, *([f"and {len(wrong) - _NOTED} more files"] if len(wrong) > _NOTED else []))


def row_of(workshop: Workshop, job: Job) -> Row:
    """The row of a job, where its cases are started by hand; also of one that a bug of ours ends."""
    try:
        if job.model.root and Path(job.model.root).is_dir():
            os.chdir(job.model.root)
        return workshop.do(job)
    except Exception as error:
        return of(job, "failed", f"internal error, a bug in fix-compile: {type(error).__name__}: {error}")
