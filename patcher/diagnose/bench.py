"""Measure states of the tree against the original, which is measured once for each manner of measuring."""

from __future__ import annotations

import hashlib
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from patcher.diagnose.diagnosis import Totals
from patcher.diagnose.events import Seen, seen_in
from patcher.diagnose.places import Places, original_lines
from patcher.harness import plan
from patcher.harness.cases import Case
from patcher.harness.compare import Judgement, judge
from patcher.harness.forks import Forks
from patcher.harness.measured import Figures, Measurement, Results, Tree, from_json
from patcher.harness.processes import Event, Progress
from patcher.harness.run import forking, run
from patcher.harness.scratch import scratch_folder
from patcher.results import FileResult
from patcher.settings import TorchSetting

MOST = 8  # states that are measured at the same time


@dataclass(frozen=True)
class State:
    """A state of the tree, measured. ``before``, ``after``: what was seen of original and patched compiled."""

    files: tuple[FileResult, ...]
    results: Results
    judgement: Judgement
    before: tuple[Seen, ...]
    after: tuple[Seen, ...]

    def totals(self, tree: Tree) -> Totals | None:
        """Sums over the cases and modes that came to their end; None when none did."""
        found = list(self.figures(tree).values())
        return totals(found) if found else None

    def figures(self, tree: Tree) -> dict[tuple[str, str], Figures]:
        """By case and mode, of those that came to their end compiled."""
        every = ((case, mode) for case in self.results.cases for mode in self.results.modes)
        found = {(case.name, mode): case.variant(tree, "compiled", mode).figures for case, mode in every}
        return {key: figures for key, figures in found.items() if figures is not None}


def totals(figures: Sequence[Figures]) -> Totals:
    """What some variants cost together."""
    warm = [f.warm.median_ms for f in figures if f.warm is not None]
    return Totals(
        breaks=sum(f.counts.breaks for f in figures),
        recompiles=sum(f.counts.recompiles for f in figures),
        launches=sum(f.launches for f in figures),
        dropped_frames=sum(f.counts.dropped_frames for f in figures),
        limit_hits=sum(f.counts.limit_hits for f in figures),
        cudagraph_skips=sum(f.counts.cudagraph_skips for f in figures),
        operators=sum(f.operators for f in figures),
        warm_ms=sum(warm) if len(warm) == len(figures) else None,
    )


def with_faster(state: State, other: State, tree: Tree) -> State:
    """Return the state with the times of ``other``, of the same cases, where that ran ``tree`` faster.

    A machine may slow one process from its start to its end, which its quartiles do not show.
    """

    def faster(one: Measurement, was: Measurement) -> Measurement:
        now, before = one.figures, was.figures
        if one.tree != tree or now is None or before is None or now.warm is None or before.warm is None:
            return one
        less = before.warm.median_ms < now.warm.median_ms
        return replace(one, figures=replace(now, warm=before.warm)) if less else one

    cases = [
        replace(case, variants=tuple(faster(v, old.variant(v.tree, v.kind, v.mode)) for v in case.variants))
        for case, old in zip(state.results.cases, other.results.cases, strict=True)
    ]
    return replace(state, results=replace(state.results, cases=tuple(cases)))


@dataclass(frozen=True)
class Begun:
    """A running measurement of a state; ``document``: its results. ``stop``: once it is set, it is ended."""

    files: tuple[FileResult, ...]
    document: Future[dict[str, Any]]
    stop: threading.Event


@dataclass
class Bench:
    """Where states are measured. Use it as a context: the folders go when it is left. ``measured``: how many so far.

    ``forks``: what starts processes, where it is there already.
    """

    cases: tuple[Case, ...]
    options: plan.Options
    python: str
    places: Places
    tolerance: float | None = None
    progress: Progress | None = None
    forks: Forks | None = None
    measured: int = 0
    _folder: Path = field(default_factory=scratch_folder)
    _kept: dict[tuple[bool, str], str] = field(default_factory=dict)
    _threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(MOST))
    _stops: list[threading.Event] = field(default_factory=list)
    _forks: Forks = field(init=False)
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self._forks = self.forks or forking(self.python)

    @property
    def seconds(self) -> float:
        """Since it is there, rounded."""
        return round(time.monotonic() - self._began, 1)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for stop in self._stops:
            stop.set()
        with self._forks:  # they end with this
            self._threads.shutdown(cancel_futures=True)
            shutil.rmtree(self._folder, ignore_errors=True)

    def measure(
        self,
        files: Sequence[FileResult],
        options: plan.Options | None = None,
        fresh: bool = False,
        settings: Sequence[TorchSetting] = (),
    ) -> State:
        """A state of the tree, under settings of PyTorch; raises what ``run`` and ``from_json`` raise.

        ``fresh``: with the original measured beside it, since a machine is not as fast at one time as at another.
        """
        asked = self._asked(files, options, fresh, settings)
        planned = self._planned(files, asked)
        document = run(planned, self.python, self._progress, self._forks)
        self._keep(asked, planned)
        return self._state(files, document)

    def begin(self, files: Sequence[FileResult], options: plan.Options, settings: Sequence[TorchSetting] = ()) -> Begun:
        """Start measuring a state concurrently with others; ``finish`` returns the result."""
        asked = self._asked(files, options, False, settings)
        asked = replace(asked, beside=bool(asked.reuse))
        planned = self._planned(files, asked)
        self._keep(asked, planned)
        self._stops.append(stop := threading.Event())
        made = self._threads.submit(run, planned, self.python, None, self._forks, stop)
        return Begun(tuple(files), made, stop)

    def finish(self, begun: Begun) -> State:
        """Return the result of a measurement that has ended. Raises what ``run`` and ``from_json`` raise."""
        return self._state(begun.files, begun.document.result())

    def _asked(
        self, files: Sequence[FileResult], options: plan.Options | None, fresh: bool, settings: Sequence[TorchSetting]
    ) -> plan.Options:
        self.measured += 1
        asked = self.options if options is None else options
        safe = all(fixed.applicability == "safe" for f in files if f.patch and f.changed for fixed in f.patch.fixed)
        known = self._kept.get((asked.quick, asked.backend))
        alike = (kept for (quick, _), kept in self._kept.items() if quick == asked.quick)  # its eager variants will do
        return replace(
            asked,
            promise="bitwise" if safe else "tolerance",
            reuse="" if fresh else known or next(alike, ""),
            keep=fresh or known is None,
            settings=tuple(settings),
            caches=self._caches(files, settings) if asked.warm_cache else {},
        )

    def _caches(self, files: Sequence[FileResult], settings: Sequence[TorchSetting]) -> dict[str, str]:
        """Return the inductor cache folders, one for each state, so that a second measurement compiles nothing."""
        state = hashlib.sha256(repr(tuple(settings)).encode())
        for file in files:
            if file.changed:
                state.update(file.path.encode() + b"\0" + file.after)
        names = {"original": "original", "patched": state.hexdigest()[:16]}
        return {tree: str(self._folder / "caches" / name) for tree, name in names.items()}

    def _state(self, files: Sequence[FileResult], document: dict[str, Any]) -> State:
        results = from_json(document)
        lines = self._lines(files)
        mode = results.modes[0]
        before = tuple(s for case in results.cases if (s := seen_in(case, "original", mode, lines)))
        after = tuple(s for case in results.cases if (s := seen_in(case, "patched", mode, lines)))
        return State(tuple(files), results, judge(results, self.tolerance), before, after)

    def _planned(self, files: Sequence[FileResult], asked: plan.Options) -> Path:
        folder = self._folder / f"{self.measured:03d}"
        folder.mkdir()
        return plan.write(folder, files, self.cases, asked)

    def _keep(self, asked: plan.Options, planned: Path) -> None:
        if asked.keep:
            self._kept[asked.quick, asked.backend] = str(planned.parent / "work")

    def _progress(self, event: Event) -> None:
        """What a run tells, with the time since the first one began."""
        if self.progress is not None:
            self.progress(replace(event, seconds=self.seconds))

    def _lines(self, files: Sequence[FileResult]) -> Mapping[str, Mapping[int, int]]:
        return {
            self.places.shown(file.path): original_lines(
                file.before.decode(file.encoding, "replace"), file.after.decode(file.encoding, "replace")
            )
            for file in files
            if file.changed
        }
