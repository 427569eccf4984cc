"""Several jobs at a time: one thread for each slot, which does one after the other where its slot is."""

from __future__ import annotations

import contextlib
import importlib.metadata
import multiprocessing
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, Protocol

from patcher.fleet.doing import Workshop, row_of
from patcher.fleet.row import Job, Row, of
from patcher.harness.processes import signals_as_exceptions
from patcher.rule import Rule

_GOODBYE_SECONDS = 5.0  # for a process to end what it has started itself
TRIES = 3  # a job is begun again at most twice


class Process:
    """A slot: its process is started with the first job, and anew when one has ended it.

    ``gpu``: which GPU its jobs see; None: whatever this process sees.
    """

    def __init__(self, rules: Sequence[Rule], number: int, gpu: int | None = None) -> None:
        self._rules, self._name, self._gpu = tuple(rules), f"process {number + 1}", gpu
        self._process: Any = None
        self._pipe: Connection | None = None
        self._lock, self._closed = threading.Lock(), False

    def do(self, job: Job, begun: Callable[[str], None]) -> Row:
        """The row of a job; one that ends its process, and the next one too, is a row that says how."""
        how = ""
        for number in range(1, TRIES):
            begun(self._name)
            try:
                row = self._asked(job)
            except (EOFError, OSError):
                how = self._ended()
                continue
            return replace(row, tries=number)
        return of(job, "failed", f"the process that worked on it {how}, twice", tries=TRIES - 1)

    def close(self) -> None:
        """End the process, with what it has started."""
        with self._lock:
            self._closed = True
            process = self._process
        if process is not None and process.is_alive():
            process.terminate()
            process.join(_GOODBYE_SECONDS)
            process.kill()

    def _asked(self, job: Job) -> Row:
        with self._lock:
            if self._closed:
                raise EOFError
            if self._process is None:
                self._start()
        assert self._pipe is not None
        self._pipe.send(job)
        row = self._pipe.recv()
        assert isinstance(row, Row)
        return row

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # there are threads here
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._rules, self._gpu), daemon=True)
        self._process.start()
        theirs.close()

    def _ended(self) -> str:
        """How the process that is gone has ended."""
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return "was ended"
        process.join(_GOODBYE_SECONDS)
        code = process.exitcode or 0
        if code == -signal.SIGKILL:
            return "was killed, perhaps because the machine ran out of memory"
        return f"died ({signal.Signals(-code).name if -code in set(signal.Signals) else f'exit status {code}'})"


def _work(pipe: Connection, rules: Sequence[Rule], gpu: int | None) -> None:
    """What runs in the process: a row for each job, until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who has started it decides what Ctrl-C means
    signal.signal(signal.SIGTERM, _leave)
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    workshop = Workshop(rules)
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(row_of(workshop, pipe.recv()))  # what cannot be sent ends the process, and is told of so


def _leave(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


#: Modules of the working folder, which ``-c`` puts first, are none of this Python.
_TORCH = "import sys; sys.path[:] = filter(None, sys.path); import importlib.metadata as m; print(m.version('torch'))"


@dataclass(frozen=True)
class Places:
    """``torches``: the versions of PyTorch there. ``told``: what they are, in a line. ``close``: when all is done."""

    slots: tuple[Slot, ...]
    torches: frozenset[str]
    told: str
    close: Callable[[], None] = lambda: None


def here(jobs: Sequence[Job], slots: Sequence[Slot]) -> Places:
    """The slots of one machine, the one that runs this."""
    torches = {version for python in {job.model.wish.python for job in jobs} if (version := torch_of(python))}
    return Places(tuple(slots), frozenset(torches), f"this machine, {len(slots)} at a time")


def torch_of(python: str) -> str:
    """The version of torch that a Python has, which is not imported; "" for none."""
    if not python or python == sys.executable:
        try:
            return importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            return ""
    try:
        told = subprocess.run([python, "-c", _TORCH], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.strip() if told.returncode == 0 else ""


LISTEN_SECONDS = 0.2


@dataclass(frozen=True)
class Begun:
    """A job has begun at a place, or goes on at another."""

    job: Job
    where: str


@dataclass(frozen=True)
class Done:
    """A job is over."""

    job: Job
    row: Row


Event = Begun | Done


class FleetError(Exception):
    """Nothing more can be done by this call; the message is one line. What is done is kept."""


class Slot(Protocol):
    """Where jobs are done, one at a time."""

    def do(self, job: Job, begun: Callable[[str], None]) -> Row:
        """The row of a job. ``begun`` is told where it runs. Raises ``FleetError``."""
        ...

    def close(self) -> None:
        """End whatever it has started, also while ``do`` runs in its thread. May be called twice."""
        ...


def run(jobs: Sequence[Job], slots: Sequence[Slot]) -> Iterator[Event]:
    """Do all jobs, in their order as far as slots get free; events as they come.

    However this is left, the slots are closed, also by SIGTERM. Raises the ``FleetError`` of a slot.
    """
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
    stop = threading.Event()
    for job in jobs:
        waiting.put(job)

    def work(slot: Slot) -> None:
        while not stop.is_set():
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                events.put(Done(job, _done(slot, job, events)))
            except BaseException as error:
                events.put(error)
                return

    threads = [threading.Thread(target=work, args=(slot,), daemon=True) for slot in slots[: len(jobs)]]
    with signals_as_exceptions():
        try:
            for thread in threads:
                thread.start()
            left = len(jobs)
            while left:
                try:
                    event = events.get(timeout=LISTEN_SECONDS)  # a wait without end would not hear Ctrl-C everywhere
                except queue.Empty:
                    continue
                if isinstance(event, BaseException):
                    raise event
                left -= isinstance(event, Done)
                yield event
        finally:
            stop.set()
            for slot in slots:
                slot.close()


def _done(slot: Slot, job: Job, events: queue.SimpleQueue[Event | BaseException]) -> Row:
    start = time.monotonic()
    if job.wrong:
        return of(job, "failed", job.wrong)
    try:
        row = slot.do(job, lambda where: events.put(Begun(job, where)))
    except FleetError:
        raise
    except Exception as error:
        row = of(job, "failed", f"internal error, a bug in fix-compile: {type(error).__name__}: {error}")
    return row if row.seconds else replace(row, seconds=round(time.monotonic() - start, 1))
