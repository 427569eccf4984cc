"""What ``optimize`` does: reach the case, search, keep the best on disk, and write it when that was agreed to."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.diagnose import latest
from patcher.diagnose.bench import Bench
from patcher.diagnose.call import FORMATS, format_of, why_not
from patcher.diagnose.diagnosing import Wanted, Whole, stamp
from patcher.diagnose.diagnosis import Proof, Tried
from patcher.diagnose.places import Places
from patcher.files import atomic
from patcher.files.backup import project_root
from patcher.harness import plan
from patcher.harness.forks import Forks
from patcher.harness.measured import ResultsError
from patcher.harness.processes import Progress, RunError, signals_as_exceptions
from patcher.measuring.measure import NO_COMPILER, Request, installed, need_torch, options_for
from patcher.measuring.observed import document
from patcher.patching.analysis import Analysis
from patcher.patching.calls import FAILURE, INTERRUPTED, OK, Told
from patcher.report.diff import file_diff
from patcher.results import FileResult, PatchResult
from patcher.run.recording import Recording
from patcher.search.concluding import verdict
from patcher.search.further import look_further
from patcher.search.judged import Best, Configuration, assumed, told_settings
from patcher.search.optimizing import Optimizer
from patcher.search.pool import room
from patcher.search.verdict import Verdict, relative
from patcher.search.writing import written
from patcher.settings import Settings, TorchSetting

BUDGET = 600.0  # seconds

#: The views of the search, and the parts of it that each has.
WORDS: dict[str, frozenset[str]] = {
    "optimize": frozenset({"fixes", "call"}),
    "prove": frozenset({"fixes"}),
    "tune": frozenset({"call"}),
}


@dataclass(frozen=True)
class Asked:
    """What the user asks of ``optimize``. ``word``: of ``WORDS``. ``reports`` and ``json``: files.

    ``budget``: seconds, since ``began``, a time of ``time.monotonic``. ``recording``: of the program that is the case;
    None for case files. ``evidence``: where to write what expressions held. ``command``: the call as typed. ``forks``:
    what starts processes, where it is there already.
    """

    paths: tuple[str, ...]
    began: float
    budget: float
    goal: str
    reports: tuple[Path, ...]
    json: Path | None
    dry_run: bool
    command: tuple[str, ...]
    strategies: dict[str, tuple[str, ...]]
    recording: Recording | None = None
    forks: Forks | None = None
    word: str = "optimize"
    evidence: Path | None = None


def optimize(
    analysis: Analysis,
    settings: Settings,
    request: Request,
    asked: Asked,
    progress: Progress | None,
    say: Callable[[str], None],
    agree: Callable[[Verdict, bytes], bool],
    write: Callable[[tuple[FileResult, ...]], Told],
) -> Told:
    """Search, and write what is best. The lines to print last are in ``err``."""
    failing = (asked.goal, asked.began, asked.json)
    try:
        need_torch(request.python)
    except RunError as error:
        return failed(str(error), *failing)
    options = replace(options_for(analysis.first, request, asked.paths, asked.command), memory=request.memory)
    places = Places(analysis.files, options.base, plan.import_roots(analysis.first, options))
    stamps = {path: stamp(path) for path in analysis.files}
    how = (request.python, places, request.tolerance, progress)
    patch = asked.reports[0].with_suffix(".patch")
    unwritable = [why for file in filter(None, (*asked.reports, asked.evidence)) if (why := why_not(file))]
    changing = [file for file in analysis.first if file.changed and not installed(file, request) and not asked.dry_run]
    unwritable += [f"{file.path}: {why}" for file in changing if (why := atomic.why_not(file.path))]
    if unwritable:
        return failed(unwritable[0], *failing)
    interrupted, cut = False, ""
    with Bench(request.cases, options, *how, forks=asked.forks) as bench:
        how_far = (asked.budget, asked.goal, asked.strategies, WORDS[asked.word], asked.word != "prove")
        search = Optimizer(analysis, settings, bench, options, *how_far, say=say, began=asked.began)
        if asked.recording is not None and asked.recording.gpu is not None:
            search.at_once = room(*asked.recording.gpu)

        def keep(best: Best) -> None:
            patch.write_bytes(_diff(best.configuration.changed, places))
            now = replace(_concluded(search, asked), files=())
            unfinished = f"not finished: nothing is written yet; the patch: {relative(str(patch))}"
            now = now if now.word == "failed" else replace(now, said=unfinished)
            _leave(asked, settings, search, now)

        search.keep = keep
        if options.backend != "inductor" and request.backend is None:
            return failed(NO_COMPILER, *failing)
        try:
            with signals_as_exceptions():
                search.run()
        except (KeyboardInterrupt, SystemExit):
            interrupted = True
        except (RunError, ResultsError, OSError) as error:
            if search.best is None:
                return failed(str(error), *failing)
            cut = f"the search ended early: {error}"
        if interrupted or cut:
            search.leave_out_uncompared()
        found = replace(_concluded(search, asked), interrupted=interrupted)
        if found.word in ("optimized", "already-best") and not (interrupted or cut):
            with contextlib.suppress(KeyboardInterrupt, RunError, ResultsError, OSError), signals_as_exceptions():
                look_further(search)
    if asked.evidence is not None and search.counted is not None:
        seen = [case.observations for case in search.counted.results.cases if case.observations]
        asked.evidence.write_text(json.dumps(document(seen)) + "\n", encoding="utf-8")
    best = search.best if found.word == "optimized" else None
    changed: tuple[FileResult, ...] = ()
    if best:
        files, left = written(analysis, search.settings_of(best.configuration), places, best.configuration)
        changed = tuple(file for file in files if not installed(file, request))
        whole = "" if asked.recording is not None and asked.recording.compiled else "the settings are "
        where = "not in the diff: write it yourself" if left else f"{whole}in the diff"
        in_diff = where if best.configuration.settings else ""
        found = replace(found, files=tuple(relative(file.path) for file in changed), in_diff=in_diff)
        patch.write_bytes(_diff(files, places))
    moved = [relative(path) for path in analysis.files if stamp(path) != stamps[path]]
    if moved:
        said = f"these files were changed while it was measured: {', '.join(moved)}"
        found, changed = replace(found, word="failed", said=said), ()
    if not (changed or moved) and search.seconds_to_first is not None:
        patch.unlink(missing_ok=True)
    lines, status = [*found.lines, *([cut] if cut else [])], found.status
    last = f"report: {', '.join(relative(str(file)) for file in asked.reports)}"
    agreed = bool(changed) and not asked.dry_run and agree(found, patch.read_bytes())
    _leave(asked, settings, search, replace(found, files=found.files if agreed else ()))
    if agreed and any(stamp(path) != stamps[path] for path in analysis.files):
        lines.append(f"Nothing was changed, for a file was edited meanwhile; the patch: {relative(str(patch))}")
        status = FAILURE
    elif agreed:
        done = write(changed)
        restore = next((line for line in str(done.out).splitlines() if " restore" in line), "")
        undo = re.sub(r".*?: (?=\S.* restore)", "", restore)
        lines += [*done.err, f"undo: {undo}          {last}" if undo else last]
        _leave(asked, settings, search, replace(found, written=done.status == OK), undo)
        status = max(status, done.status)
    elif changed:
        lines.append(f"Nothing was changed; the patch: {relative(str(patch))}          {last}")
    else:
        lines.append(last)
    if interrupted and search.base is None:
        lines = ["interrupted before anything was measured. Nothing was changed."]
        status = INTERRUPTED
    elif interrupted:
        lines.insert(0, "interrupted: this is the best that was found" if best else "interrupted")
        status = INTERRUPTED if best is None else status
    return Told(status, "".join(f"{line}\n" for line in lines))


def searched(
    analysis: Analysis,
    settings: Settings,
    request: Request,
    options: plan.Options,
    word: str,
    budget: float = BUDGET,
) -> Verdict:
    """Search with the cases of a request, and write nothing. Raises what ``run`` and ``from_json`` raise."""
    places = Places(analysis.files, options.base, plan.import_roots(analysis.first, options))
    how = (request.python, places, request.tolerance, None)
    with Bench(request.cases, options, *how) as bench:
        search = Optimizer(analysis, settings, bench, options, budget, parts=WORDS[word], against_eager=word != "prove")
        search.run()
        return verdict(search)


def _concluded(search: Optimizer, asked: Asked) -> Verdict:
    """The verdict, with the call that compiles as the user would write it."""
    best = search.best
    settings = best.configuration.settings if best else ()
    recording = asked.recording
    return verdict(search, _call(settings, asked), recording is None or recording.compiled)


def _call(settings: Sequence[TorchSetting], asked: Asked) -> str:
    """How to compile, as code; nothing where the call is not searched and stays as it is."""
    recording = asked.recording
    if not settings and "call" not in WORDS[asked.word]:
        return ""
    arguments = ", ".join(setting.told for setting in settings if setting.kind == "argument")
    lines = [setting.written for setting in settings if setting.kind in ("config", "member")]
    if blocks := [setting for setting in settings if setting.kind == "blocks"]:
        return "; ".join([*lines, *told_settings(blocks, arguments)])
    if recording is not None and recording.compiled:
        what = ", ".join(dict.fromkeys(recording.compiles)) or "the model"
        return "; ".join([*lines, *([f"torch.compile({what}, {arguments})"] if arguments else [])])
    compiling = recording.compiling(arguments) if recording is not None else [f"model.compile({arguments})"]
    return "; ".join([*lines, *compiling])


def failed(why: str, goal: str, began: float, target: Path | None, tail: Sequence[str] = ()) -> Told:
    """The end of a call that could not search. ``tail``: what the user's program has printed last."""
    found = Verdict("failed", goal, seconds=round(time.monotonic() - began, 1), said=why)
    _document(target, found)
    return Told(FAILURE, "".join(f"{line}\n" for line in found.lines), tuple(f"  {line}" for line in tail))


def _document(target: Path | None, found: Verdict) -> None:
    if target is not None:
        _write(target, json.dumps(found.json(), indent=1) + "\n")


def _leave(asked: Asked, settings: Settings, search: Optimizer, found: Verdict, undo: str = "") -> None:
    """Write what is known now: the JSON document and the report. ``undo``: the command that takes it back."""
    _document(asked.json, found)
    state, best = search.base or search.counted, search.best if found.word == "optimized" else None
    if state is None:
        return
    files, after = (best.configuration.changed, best.state.after) if best else ((), ())
    skips = {one.case: one.figures.cudagraph_skips for one in after}
    told_of = {one.case: one.figures.cudagraph_skips or skips.get(one.case, ()) for one in state.before}
    known = [replace(one, figures=replace(one.figures, cudagraph_skips=told_of[one.case])) for one in state.before]
    state = replace(state, files=files, before=tuple(known), after=after)
    bench, analysis = search.bench, search.analysis
    wanted = Wanted(bench.cases, search.options, bench.python, command=" ".join(asked.command))
    whole = Whole(analysis, settings, wanted, bench.places, state, search.counted, found.seconds)
    told = whole.diagnosis(whole.causes())
    ran = tuple(one for one in told.diagnostics if one.status != "skipped")
    patch = relative(str(asked.reports[0].with_suffix(".patch"))) if best and files and not found.written else ""
    told = replace(
        told, diagnostics=(*ran, *search.further), proof=replace(_proof(search, best, found), restore=undo, patch=patch)
    )
    for file in asked.reports:
        _write(file, FORMATS[format_of(file)](told))
    if asked.paths:
        latest.keep(told, analysis.files, os.path.realpath(project_root(asked.paths[0])))


def _proof(search: Optimizer, best: Best | None, found: Verdict) -> Proof:
    """What was tried, for the report. ``best``: what was kept."""
    one, why = best.configuration if best else Configuration(), "part of the best configuration"
    tried = [Tried((kept.told,), (), "kept", why) for kept in one.settings]
    for bundle in one.bundles:
        told = replace(search.settings_of(one), only=bundle.units)
        diff = _diff([file for file in search.analysis.again(told) if file.changed], search.bench.places)
        tried.append(Tried((bundle.label,), bundle.where, "kept", why, diff.decode("utf-8", "replace")))
    tried += [Tried((one.what,), (), one.outcome, one.reason) for one in found.dropped]
    before = search.base.totals("original") if search.base else None
    after = best.state.totals("patched") if best else None
    results, judgement = (best.state.results, best.state.judgement) if best else (None, None)
    ending = "\n".join(found.lines)
    return Proof(tuple(tried), before, after, search.bench.measured, ending, results, judgement)


def _diff(files: Sequence[FileResult], places: Places) -> bytes:
    """The changes, with what a fix assumes behind the head of its hunk, where ``patch`` reads nothing."""
    return b"".join(_with_assumptions(file, file_diff(file, places.shown(file.path))) for file in files)


def _with_assumptions(file: FileResult, diff: bytes) -> bytes:
    patch = file.patch or PatchResult("")
    first = {(one.code, one.scope): one.line for one in reversed(patch.found)}
    left = sorted((first.get((o.code, o.scope), o.line), assumed(o)) for o in patch.fixed if assumed(o))

    def head(hunk: re.Match[bytes]) -> bytes:
        end = int(hunk[1]) + int(hunk[2] or 1)
        told = "; ".join(dict.fromkeys(text for line, text in left if line < end))
        left[:] = [pair for pair in left if pair[0] >= end]
        return hunk[0] + (f" assumes: {told}" if told else "").encode()

    return re.sub(rb"(?m)^@@ -(\d+)(?:,(\d+))? .*@@$", head, diff)


def _write(target: Path, text: str) -> None:
    """Replace a file whole, so that one that is read meanwhile is never half of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(target)
