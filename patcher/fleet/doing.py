"""Do one job: scan, test, diagnose or prove, and make a row of it. What is measured goes through a door."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from patcher.analysis import Analysis
from patcher.config import ConfigError
from patcher.config import load as configuration
from patcher.diagnose.diagnosing import Wanted, diagnose
from patcher.discover import Exclude
from patcher.fleet.row import Job, Row, of
from patcher.fleet.told import diagnosed, measured, noisy, proved, scanned, tested
from patcher.harness import plan
from patcher.harness.cases import Case, CaseError
from patcher.harness.compare import judge
from patcher.harness.measured import Results, ResultsError, from_json
from patcher.harness.packages import PackageError, locate
from patcher.harness.run import RunError, run
from patcher.harness.scratch import scratch
from patcher.kept import default_folder
from patcher.measure import Request, available_memory, need_torch, options_for
from patcher.options import settings_from
from patcher.report.outcome import Outcome
from patcher.results import FileResult
from patcher.rule import Rule
from patcher.runner import run as patched
from patcher.search.call import searched
from patcher.selftest import measured as selftested
from patcher.settings import Settings
from patcher.version import VERSION

EXPECTED = (RunError, ResultsError, plan.PlanError, PackageError, CaseError, ConfigError, OSError)
LEFT_OUT = "left_out"  # in what a door returns: the files that did not go along
_NOTED = 3  # files that could not be read, of those that are named


class Door(Protocol):
    """Where plans are measured. ``machine``: the name of the one that did the last; ``away``: not this one."""

    machine: str
    away: bool

    def __call__(self, files: Sequence[FileResult], cases: Sequence[Case], options: plan.Options) -> dict[str, Any]:
        """Measure a state of the tree; returns what ``results.json`` holds."""
        ...


class Here:
    """On the machine that runs this, with the Python of the job."""

    away = False

    def __init__(self, python: str) -> None:
        self.machine, self._python = platform.node(), python

    def __call__(self, files: Sequence[FileResult], cases: Sequence[Case], options: plan.Options) -> dict[str, Any]:
        """Measure in processes of their own; raises ``RunError``."""
        with scratch() as folder:
            return run(plan.write(folder, files, cases, options), self._python)


class Workshop:
    """Does jobs with these rules, and remembers what it has found in a model. Several threads may share one."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules, self._lock = tuple(rules), threading.Lock()
        self._found: dict[tuple[object, ...], Any] = {}

    def do(self, job: Job, door: Door | None = None) -> Row:
        """The row of a job; what goes wrong is a row with the reason. ``door``: this machine by default."""
        start, door = time.monotonic(), door or Here(job.model.wish.python)
        try:
            row = self._scan(job) if job.do == "scan" else self._measure(job, door)
        except EXPECTED as error:
            row = of(job, "failed", str(error) or type(error).__name__)
        machine = door.machine if job.do != "scan" else ""
        return replace(row, machine=row.torch and machine, seconds=round(time.monotonic() - start, 1))

    def _scan(self, job: Job) -> Row:
        outcome = self._outcome(job, fixes=False)
        if not outcome.looked_at:
            return of(job, "failed", "no Python files found")
        (answer, told), figures = scanned(outcome)
        return of(job, answer, told, figures=figures, notes=_complaints(outcome))

    def _measure(self, job: Job, door: Door) -> Row:
        if not door.away:
            need_torch(job.model.wish.python)
        does = {"test": self._test, "diagnose": self._diagnose, "prove": self._prove}
        return does[job.do](job, door)

    def _test(self, job: Job, door: Door) -> Row:
        outcome = self._outcome(job, fixes=True)
        options = self._options(job, outcome.results, door)
        document = door(outcome.results, _cases(job), options)
        results = from_json(document)
        changed = any(result.changed for result in outcome.results)
        answer, told = tested(results, judge(results, job.model.wish.tolerance) if changed else None)
        return of(
            job,
            answer,
            told,
            figures={**scanned(outcome)[1], **measured(results)},
            notes=(*_complaints(outcome), *_left_out(document)),
            noise=noisy(results),
            **_place(results),
        )

    def _diagnose(self, job: Job, door: Door) -> Row:
        analysis, settings = self._analysis(job)
        options = self._options(job, analysis.first, door)
        found = diagnose(
            analysis,
            settings,
            Wanted(
                cases=_cases(job),
                options=options,
                python=job.model.wish.python,
                tolerance=job.model.wish.tolerance,
                count_first=job.model.wish.backend is None,
                elsewhere=door if door.away else None,
            ),
        )
        (answer, told), figures = diagnosed(found)
        results = found.diagnosis.results
        place = _place(results) if results else {}
        return of(job, answer, told, figures=figures, notes=found.diagnosis.problems, **place)

    def _prove(self, job: Job, door: Door) -> Row:
        analysis, settings = self._analysis(job)
        options, request = self._options(job, analysis.first, door), _request(job, door)
        found = searched(analysis, settings, request, options, job.do, door if door.away else None)
        (answer, told), figures = proved(found)
        place = {"torch": found.torch, "device": found.device, "measuring": found.seconds}
        return of(job, answer, told, figures=figures, **place)

    def _options(self, job: Job, results: Sequence[FileResult], door: Door) -> plan.Options:
        wish, request = job.model.wish, _request(job, door)
        options = options_for(results, request, job.model.paths, ("fix-compile", job.do, *job.model.paths))
        memory = wish.memory if door.away else wish.memory or available_memory()
        return replace(options, memory=memory, base=job.model.root)

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


def _request(job: Job, door: Door) -> Request:
    wish = job.model.wish
    return Request(
        cases=_cases(job),
        python=wish.python,
        packages=_packages(job),
        modes=(job.mode,),
        backend=wish.backend or ("inductor" if door.away else None),
        quick=wish.quick,
        seconds=wish.seconds,
        memory=wish.memory,
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


def _left_out(document: dict[str, Any]) -> tuple[str, ...]:
    """Files that were not sent along, because they are large."""
    return tuple(f"not sent to the machine: {name}" for name in document.get(LEFT_OUT, ())[:_NOTED])
