"""The whole diagnosis: measure, and join what happened with what the rules find."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from patcher.diagnose.bench import Bench, State, totals
from patcher.diagnose.better import change
from patcher.diagnose.counted import BACKEND as COUNTING
from patcher.diagnose.counted import Rules, counting, differing, first_report, remaining, with_missing
from patcher.diagnose.describe import Context, described, titled
from patcher.diagnose.diagnosis import Cause, CompileSite, Diagnosis, Diagnostic, Remark
from patcher.diagnose.diagnostics import ALONE, QUICK, USUAL, diagnostics, probes
from patcher.diagnose.eager_time import compile_share, eager_share
from patcher.diagnose.events import Seen
from patcher.diagnose.extents import CANDIDATES, extents
from patcher.diagnose.fine import fine
from patcher.diagnose.groups import Group, Key, groups, settled_launches
from patcher.diagnose.places import Places
from patcher.diagnose.relations import ZONE, Found, bundles, evidence, findings, traced, with_zones
from patcher.diagnose.sites import compile_sites, decorated_classes
from patcher.harness import plan
from patcher.harness.cases import Case
from patcher.harness.compare import ended
from patcher.harness.measured import CaseResult, Figures, Results
from patcher.harness.processes import Progress
from patcher.patching.analysis import Analysis
from patcher.report.diff import file_diff
from patcher.results import blamed
from patcher.settings import Settings, Unit

_SECONDS = 300


def rendered(results: Results) -> str:
    """What became of the traces of the compiled variants, a line for each; "" when none was asked for."""
    folders = dict.fromkeys(v.trace for case in results.cases for v in case.variants if v.trace)
    return "\n".join(_rendered(Path(folder)) for folder in folders)


def _rendered(folder: Path) -> str:
    logs = sorted(folder.glob("dedicated_log_torch_trace_*"))
    if not logs:
        return f"{folder}: torch has written no trace there"
    program = shutil.which("tlparse")
    if program is None:
        return f"{folder}: the trace is kept; `pip install tlparse`, then `tlparse {logs[0]}` shows it in a browser"
    out = folder / "tlparse"
    command = [program, str(logs[0]), "-o", str(out), "--overwrite", "--no-browser"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{folder}: the trace is kept; tlparse did not come to its end ({type(error).__name__})"
    if done.returncode or not (out / "index.html").exists():
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no message")
        return f"{folder}: the trace is kept; tlparse failed: {last.strip()}"
    return f"{folder}: rendered by tlparse: {out / 'index.html'}"


@dataclass(frozen=True)
class Wanted:
    """What the user asks of a diagnosis.

    ``only``: diagnostics to be run alone, without the causes. ``trace``: a folder, or "". ``command``: the call as it
    was typed; ``verify``: the command that shows what the fixes of rules with these codes do, or "". ``count_first``:
    count with a quicker backend before anything is timed; ``say`` is then told what was counted, in lines.
    """

    cases: tuple[Case, ...]
    options: plan.Options
    python: str
    only: tuple[str, ...] = ()
    trace: str = ""
    tolerance: float | None = None
    command: str = ""
    verify: Callable[[Sequence[str], bool], str] = lambda codes, unsafe: ""
    progress: Progress | None = None
    count_first: bool = False
    say: Callable[[Sequence[str]], None] | None = None


@dataclass(frozen=True)
class Diagnosed:
    """The report. ``ran``: whether every case came to its end with the original source, and no file had an error."""

    diagnosis: Diagnosis
    ran: bool = True


def diagnose(analysis: Analysis, settings: Settings, wanted: Wanted) -> Diagnosed:
    """Measure and tell. Raises what ``patcher.harness.processes`` and ``measured`` raise, and ``OSError``."""
    roots = plan.import_roots(analysis.first, wanted.options)
    places = Places(analysis.files, wanted.options.base, roots)
    options = _options(wanted)
    how = (wanted.python, places, wanted.tolerance, wanted.progress)
    with Bench(wanted.cases, options, *how) as bench:
        counted = _counted(bench, analysis, wanted)
        state = bench.measure(() if wanted.only else analysis.first)
        whole = Whole(analysis, settings, wanted, places, state, counted, bench.seconds)
        return Diagnosed(whole.diagnosis(() if wanted.only else whole.causes()), whole.ran)


def stamp(path: str) -> tuple[int, int] | None:
    """What changes when somebody writes the file."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _models(results: Results) -> tuple[str, ...]:
    """The classes of all models that were measured; () where one does not tell."""
    every = [case.classes for case in results.cases]
    return tuple(dict.fromkeys(name for classes in every for name in classes)) if all(every) else ()


def _named(wanted: Wanted) -> tuple[str, ...]:
    """The diagnostics to run."""
    if wanted.only:
        return wanted.only
    return QUICK if wanted.options.quick else USUAL


def _options(wanted: Wanted) -> plan.Options:
    counted = wanted.count_first  # twice, with another backend
    twice = not (wanted.only or counted)
    alone = wanted.only == ALONE
    return replace(wanted.options, repeat=twice, trace=wanted.trace, probes=probes(_named(wanted)), alone=alone)


def _counted(bench: Bench, analysis: Analysis, wanted: Wanted) -> State | None:
    """What is counted first, and told at once; None when it is not wanted."""
    if wanted.only or not wanted.count_first:
        return None
    state = bench.measure(analysis.first, counting(bench.options))
    if wanted.say is not None and state.before:
        rules = Rules(findings(analysis.first), {rule.code: rule.costs for rule in analysis.rules})
        wanted.say((*first_report(state, rules, bench.places), remaining(state, bench.options)))
    return state


class Whole:
    """What is measured, joined with what was found."""

    def __init__(
        self,
        analysis: Analysis,
        settings: Settings,
        wanted: Wanted,
        places: Places,
        state: State,
        counted: State | None = None,
        seconds: float = 0.0,
    ) -> None:
        self.analysis, self.wanted, self.places, self.state = analysis, wanted, places, state
        self.counted, self.seconds = counted, seconds
        self.before = with_missing(state.before, counted.before if counted else ())
        self.twice = state if counted is None else counted  # what has run the original a second time
        self.groups: tuple[Group, ...] = groups(self.before, places)
        self.settings = replace(
            settings,
            evidence=evidence(self.groups, places),
            traced=traced(self.groups, places),
            extents=extents(self.before, places)[:CANDIDATES],
            models=_models(state.results),
        )
        self.files = analysis.again(self.settings)
        self.found = findings(self.files)
        self._diffs: dict[frozenset[Unit], str] = {}
        self._told: set[Found] = set()
        self._vain: dict[Found, Group] = {}  # findings at causes that remain with their fix in

    @property
    def torch(self) -> str:
        """The version that runs."""
        return self.state.results.environment.torch

    @property
    def measurable(self) -> bool:
        """Whether the original of every case runs as the case says, so that there is something to compare with."""
        cases = self.state.results.cases
        ours = [variant for case in cases for variant in case.variants if variant.tree == "original"]
        wrong = any(variant.status == "case-error" for variant in ours)
        eager = all(case.variant("original", "eager").status == "ok" and not case.compare_error for case in cases)
        return bool(cases) and eager and not wrong

    @property
    def ran(self) -> bool:
        """Whether that is so compiled too, and all files could be read."""
        cases, modes = self.state.results.cases, self.state.results.modes
        if self.wanted.only == ALONE:
            return self.measurable and all(told.status == "ok" and told.rows for told in self._diagnostics())
        compiled = [case.variant("original", "compiled", mode).status for case in cases for mode in modes]
        return self.measurable and set(compiled) == {"ok"} and not any(file.error for file in self.analysis.first)

    def causes(self) -> tuple[Cause, ...]:
        """All causes, numbered, the most costly first."""
        patched = any(file.changed for file in self.state.files)
        complete = patched and len(self.state.after) == len(self.state.results.cases)
        after = {g.key: g for g in groups(self.state.after, self.places)} if complete else None
        context = Context(
            self.places,
            {rule.code: rule for rule in self.analysis.rules},
            self._diff,
            after,
            self._steady(),
            settled_launches(self.before),
            self.torch,
            self.wanted.verify,
            self._only_generated(),
        )
        costs = {rule.code: rule.costs for rule in self.analysis.rules}
        causes = []
        made = {unit for bundle in bundles(self.state.files, self.places) for unit in bundle.units}
        for number, group in enumerate(self.groups, 1):
            found = with_zones(group, self.found, costs, self.places)
            later = (after or {}).get(group.key)
            if later and later.events_in_all >= group.events_in_all:  # what is in and changes nothing is not its fix
                self._vain.update({f: group for f in found if f.unit in made})
                found = tuple(f for f in found if f.unit not in made)
            self._told.update(found)
            causes.append(described(number, group, found, context))
        return tuple(sorted(causes, key=lambda cause: (_SEVERITY[cause.severity], cause.number)))

    def diagnosis(self, causes: Sequence[Cause]) -> Diagnosis:
        """The report."""
        results = self.state.results
        numbered = tuple(replace(cause, number=number) for number, cause in enumerate(causes, 1))
        patched = any(file.changed for file in self.state.files)
        return Diagnosis(
            title=", ".join(dict.fromkeys(case.name for case in results.cases)),
            command=self.wanted.command,
            started=results.started,
            facts=self._facts(),
            problems=tuple(self._problems()),
            causes=numbered,
            static_only=() if self.wanted.only else self._static_only(),
            fine=() if self.wanted.only else self._fine(),
            sites=() if self.wanted.only else self._sites(),
            diagnostics=self._diagnostics(),
            results=results,
            counted=self.counted.results if self.counted else None,
            judgement=self.state.judgement if patched else None,
            effect=self._effect() if patched else "",
            trace=rendered(results) if self.wanted.trace else "",
        )

    def _effect(self) -> str:
        before, after = self.state.figures("original"), self.state.figures("patched")
        if not before or before.keys() != after.keys():
            return ""
        told = change(totals(list(before.values())), totals(list(after.values())))
        known = {group.key for group in self.groups}
        new = [group for group in groups(self.state.after, self.places) if group.key not in known]
        return "; ".join([told, *(f"new with them: {titled(group, self.places)}" for group in new)])

    def _diagnostics(self) -> tuple[Diagnostic, ...]:
        return diagnostics(self.state.results, _named(self.wanted))

    def _diff(self, found: Found) -> str:
        """Of the fixes that go together with the one of a finding."""
        every = bundles(self.files, self.places)
        units = next((bundle.units for bundle in every if found.unit in bundle.units), frozenset({found.unit}))
        if units not in self._diffs:
            risky = replace(self.settings, only=units, unsafe=True)
            changed = [file for file in self.analysis.again(risky) if file.changed]
            texts = [file_diff(file, self.places.shown(file.path)).decode(file.encoding, "replace") for file in changed]
            self._diffs[units] = "".join(texts)
        return self._diffs[units]

    def _steady(self) -> frozenset[Key] | None:
        """The causes that a second run showed too, or could not show; None when not every case was run again."""
        cases = self.twice.results.cases
        again = [Seen(c.name, c.repeated.figures, {}) for c in cases if c.repeated and c.repeated.figures]
        if len(again) < len(cases):
            return None
        first = groups(self.twice.before, self.places)
        unseen = {group.key for group in self.groups} - {group.key for group in first}
        return frozenset(unseen | {group.key for group in groups(again, self.places)})

    def _only_generated(self) -> frozenset[Key]:
        """The causes that were not there when it was counted without generating code."""
        if self.counted is None or len(self.counted.before) < len(self.before):
            return frozenset()
        return frozenset({g.key for g in self.groups} - {g.key for g in groups(self.counted.before, self.places)})

    def _facts(self) -> tuple[str, ...]:
        results = self.state.results
        where = results.environment
        threads = "" if where.threads is None else f", {where.threads} thread{'s' * (where.threads != 1)}"
        device = f"{where.device}, CUDA {where.cuda}" if where.cuda else f"{where.device}{threads}"
        machine = f"torch {where.torch}, Python {where.python}, {where.platform}, {device}"
        return (
            *([machine] if where.torch else []),
            f"backend {results.backend}, mode {', '.join(results.modes)}"
            + (", quick: fewer and shorter runs" if results.quick else "")
            + _OF_BACKENDS.get(results.backend, ""),
            *([_COUNTED_FIRST] if self.counted else []),
            f"cases: {', '.join(case.name for case in results.cases)}",
            f"measured in {self.seconds or results.seconds:.0f} s",
            *filter(None, map(self._eagerly, results.cases)),
        )

    def _eagerly(self, case: CaseResult) -> str:
        compiled = case.variant("original", "compiled", self.state.results.modes[0]).figures
        if compiled is None:
            return ""
        eager = case.variant("original", "eager").figures
        told = "; ".join(filter(None, (eager_share((compiled,)), compile_share(compiled, eager, case.blocks))))
        return f"{case.name}, compiled as it was: {told}" if told else ""

    def _problems(self) -> list[str]:
        told = [f"{file.path}: {file.error}" for file in self.analysis.first if file.error]
        told += [
            f"{file.path}:{bug.line}: internal error in {bug.code}, {blamed(bug.code)}: {bug.message}"
            for file in self.analysis.first
            for bug in file.bugs
        ]
        for case in self.state.results.cases:
            for variant in (variant for variant in case.variants if variant.status not in ("ok", "skipped")):
                whose = " (with all fixes in)" if variant.tree == "patched" else ""
                if variant.tree == "original" and case.variant("patched", variant.kind, variant.mode).status == "ok":
                    whose = "; with all fixes in it runs"
                why = self._decorated() if _COMPILED_ALREADY in variant.message else ""
                told.append(f"{case.name}: {ended(variant)}{whose}{why}")
            if case.compare_error:
                told.append(f"{case.name}: its outputs cannot be compared: {case.compare_error}")
            told += self._unsteady(case)
        return told

    def _decorated(self) -> str:
        """The classes of which PyTorch compiles no instance again."""
        places = decorated_classes(self._sites())
        return f"; take `@torch.compile` away from the class at {', '.join(places)}" if places else ""

    def _unsteady(self, case: CaseResult) -> list[str]:
        """What a second run of the same code did in another way, and what only one of two backends shows."""
        told = []
        eager = case.variant("original", "eager").figures
        if eager is not None and eager.repeatable is False:
            why = "sums are added up in another order, as on a GPU, or numbers are drawn without a seed"
            told.append(f"{case.name}: the original does not repeat its own results: {why}")
        twice = next(other for other in self.twice.results.cases if other.name == case.name)
        mode = self.twice.results.modes[0]
        if twice.repeated and twice.repeated.status not in ("ok", "skipped"):
            told.append(f"{case.name}: a second run of the original compiled ended otherwise: {twice.repeated.message}")
        for group, *counts in differing(twice, mode, functools.partial(self._count, case.name)):
            told.append(
                f"{case.name}: not the same in a second run ({counts[0]} times, then {counts[1]}): {_where(group)}"
            )
        return told + self._otherwise(case)

    def _otherwise(self, case: CaseResult) -> list[str]:
        """What was counted first, and was not there any more, or was all that could be counted."""
        first = next((one for one in self.counted.before if one.case == case.name), None) if self.counted else None
        if first is None:
            return []
        usual = next((one for one in self.state.before if one.case == case.name), None)
        if usual is None:
            return [f"{case.name}: its causes are those that the backend {COUNTING} has shown"]
        shown = self._count(case.name, usual.figures)
        counted = self._count(case.name, first.figures)
        return [
            f"{case.name}: with the backend {COUNTING}, but not with {self.state.results.backend}: {_where(group)}"
            for key, group in counted.items()
            if key not in shown
        ]

    def _count(self, case: str, figures: Figures) -> dict[Key, Group]:
        return {group.key: group for group in groups([Seen(case, figures, {})], self.places)}

    def _static_only(self) -> tuple[Remark, ...]:
        remarks = []
        for found in self.found:
            if found not in self._told and found.reported.code != ZONE:  # that is of a run, and was no way out
                item = found.reported
                where = f"{self.places.shown(found.path)}:{item.line}"
                fix = {"safe": "a safe fix exists", "unsafe": f"unsafe: {item.assumption}"}.get(
                    item.applicability, f"no fix: {item.assumption}" if item.assumption else "no fix"
                )
                what = f"{item.code} {item.name}: {item.message}"
                remarks.append(Remark(where, what, f"{self._unseen(found)}; {fix}", self._line(found)))
        return tuple(remarks)

    def _unseen(self, found: Found) -> str:
        """Why no cause is told of a finding."""
        if found in self._vain:
            return f"{titled(self._vain[found], self.places)} remains with this fix in"
        file = self.places.file(found.path)
        for group in self.groups:
            place = group.place
            dropped = group.impact.dropped_frames and place is not None and place.path == found.path
            if file and dropped and place and file.scope(place.line) == found.reported.scope:
                return f"its function is not compiled at all because of {place.where}, so this run cannot tell"
        return "no run showed a cost there"

    def _line(self, found: Found) -> str:
        file = self.places.file(found.path)
        return file.lines[found.reported.line - 1].strip() if file else ""

    def _sources(self) -> list[tuple[str, str]]:
        """Path and text of all files."""
        files = map(self.places.file, self.analysis.files)
        return [(file.path, file.text) for file in files if file]

    def _sites(self) -> tuple[CompileSite, ...]:
        return compile_sites([(self.places.shown(path), text) for path, text in self._sources()])

    def _fine(self) -> tuple[Remark, ...]:
        broke = frozenset(w for group in self.groups for e in group.events for w in (e.where, e.source) if w)
        stacks = [frame for group in self.groups for e in group.events for frame in e.stack]
        origins = [origin.where for one in self.before for origin in one.figures.origins]
        loaded = {file for one in self.state.after for file in one.figures.loaded}
        names = loaded | {where.partition(" in ")[0].rpartition(":")[0] for where in (*broke, *stacks, *origins)}
        paths = filter(None, map(self.places.path, sorted(names)))
        ran = {self.places.shown(path) for path in paths}
        return fine(self._sources(), ran, broke, shown=self.places.shown, project=self.analysis.project)


_COMPILED_ALREADY = "get_compiler_config"  # in PyTorch's words about an instance of a class with the decorator
_SEVERITY = {"high": 0, "medium": 1, "low": 2}


def _where(group: Group) -> str:
    first = group.first
    return f"{first.reason} at {first.where}" if first.where else first.reason


_COUNTED_FIRST = (
    f"what a second run shows too: counted with the backend {COUNTING}, which generates no code;"
    " all other figures are of the backend above"
)
_OF_BACKENDS = {
    "aot_eager": "; counted before inductor generates code, which may guard on more; times say nothing of inductor's",
    "eager": "; breaks that come from tracing backward are not seen; times say nothing of inductor's",
}
