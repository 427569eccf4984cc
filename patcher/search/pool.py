"""Measure several configurations, concurrently where there is room."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from patcher.diagnose.bench import MOST, Begun, Bench, State
from patcher.harness import plan
from patcher.harness.processes import cores
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


@dataclass(frozen=True)
class _Running(Generic[_T]):
    trial: Trial[_T]
    begun: Begun
    since: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.since


@dataclass
class Pool(Generic[_T]):
    """Trials, measured in the order in which they are added; at most ``at_once`` at the same time.

    ``took``: the seconds of the trial that ended last. ``patience``: those that one has.
    """

    bench: Bench
    at_once: int = 1
    took: float = 0.0
    patience: float = math.inf
    _waiting: deque[Trial[_T]] = field(default_factory=deque)
    _running: list[_Running[_T]] = field(default_factory=list)

    def add(self, trial: Trial[_T]) -> None:
        """Queue a trial; while ``results`` is read, too."""
        self._waiting.append(trial)

    def results(
        self,
        over: Callable[[], bool],
        say: Callable[[_T], None],
        too_slow: Callable[[_T, float], bool] = lambda what, seconds: False,
    ) -> Iterator[tuple[_T, State | None]]:
        """Yield each trial's result as it ends.

        None for those not started when the budget was ``over``, and for those that were ``too_slow`` after so many
        seconds, which are stopped.
        """
        while self._waiting or self._running:
            if self._waiting and over():
                waiting = list(self._waiting)
                self._waiting.clear()
                yield from ((trial.what, None) for trial in waiting)
            elif self.at_once == 1 and not self._running:
                trial, since = self._waiting.popleft(), time.monotonic()
                say(trial.what)
                options = replace(trial.options, until=min(trial.options.until, since + self.patience))
                state = self.bench.measure(trial.files, options, settings=trial.settings)
                self.took = time.monotonic() - since
                yield trial.what, state
            elif self._waiting and len(self._running) < self.at_once:
                self.start(say)
            else:
                yield from self._ended(too_slow)
                time.sleep(_POLL_SECONDS)

    def start(self, say: Callable[[_T], None]) -> None:
        """Begin what is queued while there is room, so that it runs before ``results`` is read."""
        while self._waiting and 1 < self.at_once > len(self._running):
            trial = self._waiting.popleft()
            say(trial.what)
            options = replace(trial.options, workers=max(1, cores() // _CORES))
            self._running.append(_Running(trial, self.bench.begin(trial.files, options, trial.settings)))

    def _ended(self, too_slow: Callable[[_T, float], bool]) -> Iterator[tuple[_T, State | None]]:
        for one in list(self._running):
            stopped = one.begun.stop.is_set()
            if one.begun.document.done():
                self._running.remove(one)
                self.took = one.seconds
                yield one.trial.what, None if stopped else self.bench.finish(one.begun)
            elif not stopped and too_slow(one.trial.what, one.seconds):
                one.begun.stop.set()


def room_of(state: State) -> int:
    """Return how many configurations can be measured concurrently, by what the original took in eager mode.

    1 on a CPU, where they would slow each other.
    """
    place = state.results.environment
    eager = [case.variant("original", "eager").figures for case in state.results.cases]
    used = max((one.memory.bytes for one in eager if one is not None and one.memory is not None), default=None)
    return room(used, place.memory) if place.cuda and used is not None and place.memory is not None else 1


def room(used: int, memory: int) -> int:
    """Return for how many configurations, each eager and compiled, GPU memory (bytes) and CPU cores suffice."""
    return max(1, min(MOST, cores() // _CORES, int(memory // (2 * (_ROOM * used + _CONTEXT)))))
