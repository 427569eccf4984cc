"""Measure several configurations, concurrently where there is room."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from patcher.diagnose.bench import MOST, Begun, Bench, State
from patcher.harness import plan
from patcher.results import FileResult
from patcher.settings import TorchSetting

_T = TypeVar("_T")
_CORES = 2  # that a process keeps busy while it compiles
_ROOM = 1.5  # times the GPU memory that the original takes
_CONTEXT = 2**30  # bytes of GPU memory that each process takes for itself
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Trial(Generic[_T]):
    """One measurement. ``what``: the caller's key."""

    what: _T
    files: tuple[FileResult, ...]
    settings: tuple[TorchSetting, ...]
    options: plan.Options


@dataclass
class Pool(Generic[_T]):
    """Trials, measured in the order in which they are added; at most ``at_once`` at the same time."""

    bench: Bench
    at_once: int = 1
    _waiting: deque[Trial[_T]] = field(default_factory=deque)
    _running: list[tuple[Trial[_T], Begun]] = field(default_factory=list)

    def add(self, trial: Trial[_T]) -> None:
        """Queue a trial."""
        self._waiting.append(trial)

    def results(self, over: Callable[[], bool], say: Callable[[_T], None]) -> Iterator[tuple[_T, State | None]]:
        """Yield each trial's result as it ends; None for those not started when the budget was ``over``."""
        while self._waiting or self._running:
            if self._waiting and over():
                yield from ((trial.what, None) for trial in self._waiting)
                self._waiting.clear()
            elif self.at_once == 1 and not self._running:
                trial = self._waiting.popleft()
                say(trial.what)
                yield trial.what, self.bench.measure(trial.files, trial.options, settings=trial.settings)
            elif self._waiting and len(self._running) < self.at_once:
                trial = self._waiting.popleft()
                say(trial.what)
                options = replace(trial.options, workers=max(1, _cores() // _CORES))
                self._running.append((trial, self.bench.begin(trial.files, options, trial.settings)))
            else:
                yield from self._ended()
                time.sleep(_POLL_SECONDS)

    def _ended(self) -> Iterator[tuple[_T, State]]:
        for pair in [pair for pair in self._running if pair[1].document.done()]:
            self._running.remove(pair)
            yield pair[0].what, self.bench.finish(pair[1])


def room(state: State) -> int:
    """Return how many configurations can be measured concurrently, each eager and compiled.

    1 on a CPU, where they would slow each other; on a GPU as many as its memory and the CPU cores allow.
    """
    place = state.results.environment
    eager = [case.variant("original", "eager").figures for case in state.results.cases]
    used = max((one.memory.bytes for one in eager if one is not None and one.memory is not None), default=None)
    if not place.cuda or used is None or place.memory is None:
        return 1
    return max(1, min(MOST, _cores() // _CORES, int(place.memory // (2 * (_ROOM * used + _CONTEXT)))))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
