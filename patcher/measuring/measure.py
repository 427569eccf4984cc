"""What ``--test`` does: patch in memory, measure original against patched, and write only when they are equivalent."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.files import atomic
from patcher.files.backup import BackupError
from patcher.harness import plan
from patcher.harness.cases import Case
from patcher.harness.compare import Judgement, judge
from patcher.harness.measured import Results, ResultsError, from_json
from patcher.harness.processes import Progress, RunError
from patcher.harness.run import run
from patcher.harness.scratch import scratch
from patcher.patching.calls import FAILURE, FINDINGS, INTERRUPTED, OK, Told, complaints
from patcher.patching.changes import Change
from patcher.report import Outcome
from patcher.report.fitted import fitted
from patcher.report.harness import harness_json
from patcher.report.markdown.measured import as_it_is, harness_markdown
from patcher.results import FileResult

MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs")
BACKENDS = ("inductor", "aot_eager", "eager")
QUICK = "FIX_COMPILE_QUICK"
TEST_FORMATS = ("text", "json", "markdown")
_MEMORY_SHARE = 0.8  # of what is free: the rest is for the system and for us
_QUICK_SECONDS, _SECONDS = 600.0, 1800.0
_REPLAY_SECONDS = 20.0  # at most, with changed inputs


@dataclass(frozen=True)
class Request:
    """What the user asked to measure. ``seconds`` and ``memory`` (bytes) limit each process; None: the standard.

    ``wide``: the report may be wider than 80 columns.

    ``python``: the interpreter that has the model's dependencies.
    ``change``: what is judged in the place of our own patch; nothing of it is written.
    """

    cases: tuple[Case, ...]
    python: str
    packages: dict[str, Path]
    modes: tuple[str, ...] = ("default",)
    backend: str | None = None
    quick: bool = False
    verbose: bool = False
    seconds: float | None = None
    memory: int | None = None
    tolerance: float | None = None
    wide: bool = True
    change: Change | None = None


def test(
    outcome: Outcome,
    request: Request,
    paths: Sequence[str],
    command: Sequence[str],
    format_: str,
    progress: Progress | None,
    write: Callable[[Outcome], Told] | None,
) -> Told:
    """Measure what the patch does. ``write`` puts it on disk, which happens only when all verdicts are "equivalent".

    Without ``write`` (``--dry-run``) the tree stays as it is. Exit status: 0 equivalent (or nothing to patch), 1 not,
    2 when a case, a file or the measurement failed.
    """
    errors = tuple(complaints(outcome))
    if not any(result.changed for result in outcome.results):
        if outcome.failed:
            return _nothing(outcome, format_, errors)
        return _as_it_is(outcome, request, options_for(outcome.results, request, paths, command), format_, progress)
    if write is not None:
        changed = [result.path for result in outcome.results if result.changed and not installed(result, request)]
        locked = [f"{path}: error: {why}; nothing was measured" for path in changed if (why := atomic.why_not(path))]
        if locked:
            return Told(FAILURE, err=(*errors, *locked))
    options = options_for(outcome.results, request, paths, command)
    if write is not None and _without_compiler(request, options):
        return Told(FAILURE, err=(*errors, f"--test: error: {NO_COMPILER} (your files are as they were)"))
    results = _ran(outcome, request, options, progress)
    if isinstance(results, Told):
        return replace(results, err=(*errors, *results.err))
    judgement = judge(results, request.tolerance)
    return _told(outcome, results, judgement, format_, write, request, _without_compiler(request, options))


def _ran(outcome: Outcome, request: Request, options: plan.Options, progress: Progress | None) -> Results | Told:
    """The results, or why there are none."""
    try:
        return from_json(_document(outcome, request, options, progress))
    except KeyboardInterrupt:
        return Told(INTERRUPTED, err=("interrupted; nothing was changed",))
    except (RunError, ResultsError, OSError) as error:
        return Told(FAILURE, err=(f"--test: error: {error} (your files are as they were)",))


def judged(
    change: Change,
    outcome: Outcome,
    request: Request,
    paths: Sequence[str],
    command: Sequence[str],
    format_: str,
    progress: Progress | None,
) -> Told:
    """Measure what somebody else's change does, as `test` measures ours; nothing of it is written.

    ``outcome``: one without results. Exit status: 0 equivalent (or no Python source differs), 1 not, 2 on failure.
    """
    change = change.without(case.file for case in request.cases)
    said = () if outcome.quiet else (change.told, *change.notes)
    if not change.results:
        if format_ == "json":
            return Told(OK, _json_without_verdicts(None, True), said)
        return Told(OK, "" if outcome.quiet else "no Python source differs, so there is nothing to compare\n", said)
    outcome, request = replace(outcome, results=change.results), replace(request, change=change)
    told = test(outcome, request, paths, command, format_, progress, None)
    return replace(told, err=(*said, *told.err))


def _nothing(outcome: Outcome, format_: str, errors: tuple[str, ...]) -> Told:
    """The end of a call that has nothing to measure."""
    status = FAILURE if outcome.failed else OK
    if format_ == "json":
        return Told(status, _json_without_verdicts(None, status == OK), errors)
    return Told(status, "" if errors or outcome.quiet else "nothing to patch, so there is nothing to compare\n", errors)


def _as_it_is(
    outcome: Outcome, request: Request, options: plan.Options, format_: str, progress: Progress | None
) -> Told:
    """The end of a call that has nothing to patch: the cases run all the same, and show their breaks."""
    results = _ran(outcome, request, options, progress)
    if isinstance(results, Told):
        return results
    told, runs = as_it_is(results)
    told = told if request.wide else fitted(told)
    status = OK if runs else FAILURE
    if format_ == "json":
        return Told(status, _json_without_verdicts(results, runs))
    listed = outcome.count("unsafe")
    more = f"; {listed} unsafe fix{'es' if listed > 1 else ''} (see check)" if listed else ""
    last = f"nothing to patch{more}: the case{'s' if len(request.cases) > 1 else ''} ran as it is; diagnose tells why"
    return Told(status, f"{_without_compiler(request, options)}{told}{last}\n")


def _json_without_verdicts(results: Results | None, equivalent: bool) -> str:
    judgement = {"verdicts": [], "unexercised": [], "equivalent": equivalent}
    if results is None:
        return json.dumps({"schema": 1, "results": None, **judgement}, indent=2) + "\n"
    return json.dumps({**json.loads(harness_json(results, Judgement(()))), **judgement}, indent=2) + "\n"


#: Why nothing is said of speed.
NO_COMPILER = "there is no C++ compiler (g++, clang++ or CXX) with Python's headers; install one"


def _without_compiler(request: Request, options: plan.Options) -> str:
    """The line that says why inductor was not used, when the user has not chosen that."""
    if request.backend or options.backend == "inductor":
        return ""
    return (
        "No C++ compiler (g++, clang++, or CXX) with Python's headers: compiled with\n"
        f"{options.backend}, so breaks are counted but times say nothing of inductor.\n\n"
    )


def _told(
    outcome: Outcome,
    results: Results,
    judgement: Judgement,
    format_: str,
    write: Callable[[Outcome], Told] | None,
    request: Request,
    first: str,
) -> Told:
    """The report, after the patch was written or left."""
    status = OK if judgement.equivalent else FAILURE if judgement.invalid else FINDINGS
    ours = tuple(result for result in outcome.results if not installed(result, request))
    errors, out = tuple(complaints(outcome)), ""
    if not judgement.equivalent:
        last = "a case failed" if judgement.invalid else "not equivalent"
        last += ": nothing was changed"
    elif request.change is not None:
        last = "equivalent; nothing was changed"
    elif write is None:
        last = "equivalent; nothing was changed, as --dry-run asks"
    elif not any(result.changed for result in ours):
        last = "equivalent; nothing was changed: installed packages are never patched in place"
    else:
        written = _written(write, replace(outcome, results=ours))
        status, errors, out = max(status, written.status), written.err, str(written.out)
        last = "equivalent: the patch is applied" if written.status == OK else "equivalent, but not all was written"
    status = FAILURE if outcome.failed else status
    brief = format_ == "text" and not request.wide
    report = harness_json(results, judgement) if format_ == "json" else harness_markdown(results, judgement, brief)
    if format_ != "text":
        report = report if format_ == "json" else first + report
        return Told(status, report, (*errors, *out.splitlines()[-1:], last))
    return Told(status, f"{first}{fitted(report) if brief else report}\n{last}\n{out}", errors)


def _written(write: Callable[[Outcome], Told], outcome: Outcome) -> Told:
    """Apply the patch; that its originals cannot be saved does not take the report away."""
    try:
        return write(outcome)
    except BackupError as error:
        return Told(FAILURE, err=(f"error: {error}",))


def installed(result: FileResult, request: Request) -> bool:
    """Whether a file belongs to a package that was named with ``--package``."""
    real = Path(os.path.realpath(result.path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in request.packages.values())


def options_for(
    results: Sequence[FileResult], request: Request, paths: Sequence[str], command: Sequence[str]
) -> plan.Options:
    """How to measure what was asked for."""
    change, fixed = request.change, [found for result in results if result.patch for found in result.patch.fixed]
    seconds = request.seconds or (_QUICK_SECONDS if request.quick else _SECONDS)
    return plan.Options(
        command=tuple(command),
        paths=tuple(paths),
        packages=request.packages,
        modes=request.modes,
        backend=request.backend or _standard_backend(request),
        promise="bitwise" if not change and all(found.applicability == "safe" for found in fixed) else "tolerance",
        quick=request.quick,
        verbose=request.verbose,
        seconds=seconds,
        memory=request.memory or available_memory(),
        on_disk=change.on_disk if change else "",
        replay=_REPLAY_SECONDS if change else 0.0,
    )


def _document(
    outcome: Outcome, request: Request, options: plan.Options, progress: Progress | None
) -> dict[str, object]:
    """The measurement, as ``results.json`` has it."""
    need_torch(request.python)
    with scratch() as folder:
        return run(plan.write(folder, outcome.results, request.cases, options), request.python, progress)


def need_torch(python: str) -> None:
    """Raise ``RunError`` when the interpreter does not find torch.

    It is not imported. An interpreter that cannot be started is told of later.
    """
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
    try:
        found = subprocess.run([python, "-c", code], capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return
    if not found:
        raise RunError(f"{python} has no torch; --python names another")


def _standard_backend(request: Request) -> str:
    """Inductor, unless it would need a C++ compiler or Python's headers and there are none."""
    if shutil.which("nvidia-smi"):
        return "inductor"
    named = os.environ.get("CXX", "").split()[:1]
    compiler = next(filter(shutil.which, named or ("g++", "clang++", "c++")), None)
    code = "import sysconfig, os; print(os.path.exists(os.path.join(sysconfig.get_path('include'), 'Python.h')))"
    try:
        told = subprocess.run(
            [request.python, "-c", code], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "inductor"
    return "inductor" if compiler and told.strip() == "True" else "aot_eager"


def available_memory() -> int | None:
    """Most bytes that a worker may use: four fifths of what is free, in the system and in our control group."""
    free: list[int] = []
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
        group = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        free += [int(group)] if group.isdigit() else []
    except (OSError, ValueError):
        pass
    return int(_MEMORY_SHARE * min(free)) if free else None


def quick_by_environment() -> bool:
    """Whether ``FIX_COMPILE_QUICK`` is set to something other than nothing, 0, no or false."""
    return os.environ.get(QUICK, "").lower() not in ("", "0", "no", "false")
