"""Slots on this machine: a process for each, which costs only its own job when it dies."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

from patcher.fleet.doing import Workshop, row_of
from patcher.fleet.row import Job, Row, of
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
