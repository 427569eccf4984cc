"""Do one job: scan, test, diagnose or prove, and make a row of it."""

from __future__ import annotations

import math
import os
import platform
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from patcher.config import ConfigError
from patcher.config import load as configuration
from patcher.diagnose.diagnosing import Diagnosed, Wanted, diagnose
from patcher.diagnose.diagnosis import SEVERITIES
from patcher.files.discover import Exclude
from patcher.files.kept import default_folder
from patcher.fleet.row import Answer, Job, Row, of
from patcher.harness import plan
from patcher.harness.cases import Case, CaseError
from patcher.harness.compare import Judgement, ended, judge, speedup, within_noise
from patcher.harness.measured import CaseResult, Figures, Results, ResultsError, from_json
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
from patcher.search.verdict import Verdict
from patcher.selftest import executing
from patcher.settings import Settings
from patcher.version import VERSION

Told = tuple[Answer, str]  # and why, or in a few words what


def scanned(outcome: Outcome) -> tuple[Told, dict[str, float]]:
    """Of a scan: how many findings have which kind of fix."""
    counts = {"safe": outcome.count("fixable"), "unsafe": outcome.count("unsafe"), "noted": outcome.count("no-fix")}
    files = len(outcome.looked_at)
    told = f"{counts['safe']} of {len(outcome.entries)} findings have a safe fix" if outcome.entries else "no findings"
    return ("ok", f"{told} ({files} file{'' if files == 1 else 's'})"), {key: float(n) for key, n in counts.items()}


def tested(results: Results, judgement: Judgement | None) -> Told:
    """Of one case in one mode: the verdict; without one (nothing was patched), whether it runs."""
    case, mode = results.cases[0], results.modes[0]
    if judgement is None:
        variants = case.variant("original", "eager"), case.variant("original", "compiled", mode)
        broken = next((variant for variant in variants if variant.figures is None), None)
        return ("failed", ended(broken)) if broken else ("ok", "nothing to patch: ran as it is")
    verdict = judgement.verdicts[0]
    why = f"{verdict.status}: {verdict.reasons[0]}" if verdict.reasons else verdict.status
    return ("ok" if verdict.status == "equivalent" else "failed" if judgement.invalid else "not equivalent"), why


def diagnosed(found: Diagnosed) -> tuple[Told, dict[str, float]]:
    """Of a diagnosis: how many causes there are."""
    report, results = found.diagnosis, found.diagnosis.results
    figures = measured(results) if results else {}
    if not found.ran and results is not None:
        told = tested(results, None)
        if told[0] == "failed":
            return told, figures
    causes = report.causes
    counts = [f"{n} {s}" for s in SEVERITIES if (n := sum(cause.severity == s for cause in causes))]
    text = f"{len(causes)} cause{'' if len(causes) == 1 else 's'}" + (f" ({', '.join(counts)})" if counts else "")
    figures["causes"] = float(len(causes))
    return ("ok", text), figures


def proved(found: Verdict) -> tuple[Told, dict[str, float]]:
    """Of a search: what was kept, and the counts and times before and after."""
    pairs = {"breaks": found.breaks, "recompiles": found.recompiles, "launches": found.graphs}
    known = {f"{name}_before": pair.before for name, pair in pairs.items()}
    known |= {f"{name}_after": pair.after for name, pair in pairs.items()}
    times = {"eager_ms": found.eager_ms, "before_ms": found.before_ms, "after_ms": found.after_ms}
    figures = {name: float(value) for name, value in {**known, **times}.items() if value is not None}
    if found.before_ms and found.after_ms:
        figures["speedup"] = found.before_ms / found.after_ms
    differs = found.max_difference is not None and not found.equivalent
    answer: Answer = "ok" if found.word != "failed" else "not equivalent" if differs else "failed"
    told = found.said if answer != "ok" else f"{len(found.fixes)} fixes kept; {found.lines[0]}"
    return (answer, told), figures


def measured(results: Results) -> dict[str, float]:
    """The figures of one case in one mode."""
    case, mode = results.cases[0], results.modes[0]
    before, after = (case.variant(tree, "compiled", mode).figures for tree in ("original", "patched"))
    figures = {**_counts(before, "before"), **_counts(after, "after")}
    eager = case.variant("original", "eager").figures
    if eager is not None and eager.warm is not None:
        figures["eager_ms"] = eager.warm.median_ms
    if before and after and before.warm and after.warm:
        figures["speedup"] = speedup(before.warm, after.warm)
    compared = case.comparison("patched", "compiled", mode)
    if compared is not None and compared.outputs.mae is not None:
        figures["mae"] = compared.outputs.mae
    return {key: value for key, value in figures.items() if math.isfinite(value)}


def noisy(results: Results) -> bool:
    """Whether the two compiled times of a case are too near to be told apart."""
    case, mode = results.cases[0], results.modes[0]
    before, after = (_warm(case, tree, mode) for tree in ("original", "patched"))
    return bool(before and after and before.warm and after.warm and within_noise(before.warm, after.warm))


def _warm(case: CaseResult, tree: str, mode: str) -> Figures | None:
    return case.variant("patched" if tree == "patched" else "original", "compiled", mode).figures


def _counts(figures: Figures | None, tree: str) -> Mapping[str, float]:
    if figures is None:
        return {}
    told = {
        f"breaks_{tree}": float(figures.counts.breaks),
        f"recompiles_{tree}": float(figures.counts.recompiles),
        f"launches_{tree}": float(figures.launches),
    }
    return told if figures.warm is None else {**told, f"{tree}_ms": figures.warm.median_ms}


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
        shown = executing.measured(self._rules)
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
    bugs = [f"bug in {bug.code}: {bug.message}" for r in outcome.results for bug in r.bugs]
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
