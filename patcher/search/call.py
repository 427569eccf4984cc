"""What ``optimize`` does: reach the case, search, keep the best on disk, and write it when that was agreed to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.analysis import Analysis
from patcher.calls import FAILURE, INTERRUPTED, Told
from patcher.diagnose.bench import Bench
from patcher.diagnose.diagnosing import Wanted, Whole, stamp
from patcher.diagnose.diagnosis import Proof, Tried
from patcher.diagnose.places import Places
from patcher.harness import plan
from patcher.harness.forks import Forks
from patcher.harness.measured import ResultsError
from patcher.harness.run import Progress, RunError, signals_as_exceptions
from patcher.measure import Request, need_torch, options_for
from patcher.report import Outcome
from patcher.report.diagnosis_html import diagnosis_html
from patcher.report.diff import file_diff
from patcher.results import FileResult
from patcher.run.recording import Recording
from patcher.search.optimizing import Best, Optimizer, verdict
from patcher.search.pool import room
from patcher.search.verdict import Verdict, relative
from patcher.settings import Settings, TorchSetting


@dataclass(frozen=True)
class Asked:
    """What the user asks of ``optimize``. ``report`` and ``json``: files; ``agree``: whether the diff may be written.

    ``budget``: seconds, since ``began``, a time of ``time.monotonic``. ``recording``: of the program that is the case;
    None for case files. ``command``: the call as typed. ``forks``: what starts processes, where it is there already.
    """

    paths: tuple[str, ...]
    began: float
    budget: float
    goal: str
    report: Path
    json: Path | None
    dry_run: bool
    command: tuple[str, ...]
    strategies: dict[str, tuple[str, ...]]
    recording: Recording | None = None
    forks: Forks | None = None


def optimize(
    analysis: Analysis,
    settings: Settings,
    request: Request,
    asked: Asked,
    progress: Progress | None,
    say: Callable[[str], None],
    agree: Callable[[bytes], bool],
    write: Callable[[Outcome], Told],
    outcome: Callable[[tuple[FileResult, ...]], Outcome],
) -> Told:
    """Search, and write what is best. The lines to print last are in ``err``."""
    try:
        need_torch(request.python)
    except RunError as error:
        return _failed(asked, str(error))
    options = replace(options_for(analysis.first, request, asked.paths, asked.command), memory=request.memory)
    places = Places(analysis.files, options.base, plan.import_roots(analysis.first, options))
    stamps = {path: stamp(path) for path in analysis.files}
    how = (request.python, places, request.tolerance, progress)
    patch = asked.report.with_suffix(".patch")
    asked.report.parent.mkdir(parents=True, exist_ok=True)
    interrupted, cut = False, ""
    with Bench(request.cases, options, *how, forks=asked.forks) as bench:
        search = Optimizer(analysis, settings, bench, options, asked.budget, asked.goal, asked.strategies)
        search.began = asked.began
        if asked.recording is not None and asked.recording.gpu is not None:
            search.at_once = room(*asked.recording.gpu)
        search.say = say

        def keep(best: Best) -> None:
            patch.write_bytes(_diff(best.configuration.changed, places))
            _leave(asked, analysis, settings, request, places, search, _concluded(search, asked))

        search.keep = keep
        if options.backend != "inductor" and request.backend is None:
            return _failed(asked, "there is no C++ compiler (g++, clang++ or CXX) with Python's headers; install one")
        try:
            with signals_as_exceptions():
                search.run()
        except (KeyboardInterrupt, SystemExit):
            interrupted = True
        except (RunError, ResultsError, plan.PlanError, OSError) as error:
            if search.best is None:
                return _failed(asked, str(error))
            cut = f"the search ended early: {error}"
    found = replace(_concluded(search, asked), interrupted=interrupted)
    best = search.best if found.word == "optimized" else None
    changed = best.configuration.changed if best else ()
    moved = [relative(path) for path in analysis.files if stamp(path) != stamps[path]]
    if moved:
        said = f"these files were changed while it was measured: {', '.join(moved)}"
        found, changed = replace(found, word="failed", said=said), ()
    if not changed and search.seconds_to_first is not None:
        patch.unlink(missing_ok=True)
    lines = [*found.lines, *([cut] if cut else [])]
    status = found.status
    last = f"report: {relative(str(asked.report))}"
    written = bool(changed) and not asked.dry_run and agree(patch.read_bytes())
    _leave(asked, analysis, settings, request, places, search, replace(found, files=found.files if written else ()))
    if written and any(stamp(path) != stamps[path] for path in analysis.files):
        lines.append(f"Nothing was changed, for a file was edited meanwhile; the patch: {relative(str(patch))}")
        status = FAILURE
    elif written:
        told = write(outcome(changed))
        restore = next((line for line in str(told.out).splitlines() if " restore" in line), "")
        undo = re.sub(r".*?: (?=\S.* restore)", "", restore)
        lines += [*told.err, f"undo: {undo or 'fix-compile restore'}          {last}"]
        status = max(status, told.status)
    elif changed:
        lines.append(f"Nothing was changed; the patch: {relative(str(patch))}          {last}")
    else:
        lines.append(last)
    if interrupted and search.base is None:
        lines = ["interrupted before anything was measured. Nothing was changed."]
        status = INTERRUPTED
    elif interrupted:
        lines.insert(0, "interrupted: this is the best that was found")
        status = INTERRUPTED if best is None else status
    return Told(status, "".join(f"{line}\n" for line in lines))


def _concluded(search: Optimizer, asked: Asked) -> Verdict:
    """The verdict, with the call that compiles as the user would write it."""
    best = search.best
    settings = best.configuration.settings if best else ()
    recording = asked.recording
    return verdict(search, _call(settings, recording), recording is None or recording.compiled)


def _call(settings: Sequence[TorchSetting], recording: Recording | None) -> str:
    """How to compile, as code."""
    arguments = ", ".join(setting.told for setting in settings if setting.kind == "argument")
    lines = [setting.written for setting in settings if setting.kind != "argument"]
    if recording is not None and recording.compiled and not arguments:
        return "; ".join(lines)
    if recording is not None and recording.compiled:
        what = ", ".join(dict.fromkeys(recording.compiles)) or "the model"
        return "; ".join([*lines, f"torch.compile({what}, {arguments})"])
    what = recording.model if recording is not None else "model"
    return "; ".join([*lines, f"{what}.compile({arguments})"])


def _failed(asked: Asked, why: str) -> Told:
    """The end of a call that could not search."""
    found = Verdict("failed", asked.goal, said=why)
    _document(asked, found)
    return Told(FAILURE, "".join(f"{line}\n" for line in found.lines))


def failed(why: str, goal: str, target: Path | None, tail: Sequence[str]) -> Told:
    """The same, before there is anything to search in; ``tail``: what the user's program has printed last."""
    found = Verdict("failed", goal, said=why)
    if target is not None:
        _write(target, json.dumps(found.json(), indent=1) + "\n")
    return Told(FAILURE, "".join(f"{line}\n" for line in found.lines), tuple(f"  {line}" for line in tail))


def _document(asked: Asked, found: Verdict) -> None:
    if asked.json is not None:
        _write(asked.json, json.dumps(found.json(), indent=1) + "\n")


def _leave(
    asked: Asked,
    analysis: Analysis,
    settings: Settings,
    request: Request,
    places: Places,
    search: Optimizer,
    found: Verdict,
) -> None:
    """Write what is known now: the JSON document and the report."""
    _document(asked, found)
    state = search.base or search.counted
    if state is None:
        return
    wanted = Wanted(request.cases, search.options, request.python, command=" ".join(asked.command))
    whole = Whole(analysis, settings, wanted, places, state, search.counted, found.seconds)
    told = replace(whole.diagnosis(whole.causes()), proof=_proof(search, found))
    _write(asked.report, diagnosis_html(told))


def _proof(search: Optimizer, found: Verdict) -> Proof:
    """What was tried, for the report."""
    best = search.best
    tried = [
        Tried((bundle.label,), bundle.where, "kept", "part of the best configuration")
        for bundle in (best.configuration.bundles if best else ())
    ]
    tried += [Tried((one.what,), (), "not better", one.reason) for one in found.dropped]
    before = search.base.totals("original") if search.base else None
    after = best.state.totals("patched") if best else None
    results, judgement = (best.state.results, best.state.judgement) if best else (None, None)
    ending = " ".join(found.lines)
    return Proof(tuple(tried), before, after, search.bench.measured, ending, results, judgement)


def _diff(files: Sequence[FileResult], places: Places) -> bytes:
    return b"".join(file_diff(file, places.shown(file.path)) for file in files)


def _write(target: Path, text: str) -> None:
    """Replace a file whole, so that one that is read meanwhile is never half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(target)
