"""Start programs as forks of one interpreter that has imported torch: what costs seconds is done once for all of them.

A fork is as much by itself as a new process: nothing that it compiles, sets or breaks reaches another. Where it would
not be the same as a new one there is none (``parent.py``, the interpreter, says where). There, when the machine has
cores to spare, an interpreter for the next program imports torch while one program runs; else the caller starts a
process. Standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

#: What each job may set for itself: torch reads none of it when it is imported.
OWN = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHDYNAMO_DISABLE")
PREFIX = "FIX_COMPILE_"  # of settings that mean nothing to a job
READY, SINGLE, READY_SECONDS = b"ready", b"single", 120.0
SLICE_SECONDS = 0.02  # of waiting, between the turns of several threads
CORES = 8  # with fewer, what imports torch for the next program would slow the one that is measured


@dataclass(frozen=True)
class Manner:
    """How a program runs. ``code``: whether it generates code, for which this machine's vector instructions are known.

    ``untimed``: it only counts; Dynamo need not time its guards. ``threads``: how many it may use, ``workers``: how
    many processes generate code for it; 0: torch's choice. ``gpu``: whether what it computes is on a GPU.
    """

    code: bool = False
    untimed: bool = False
    threads: int = 0
    workers: int = 0
    gpu: bool = False


USUAL = Manner()


class _Parent:
    """The running interpreter. Raises ``OSError`` when it cannot be started."""

    def __init__(self, python: str, program: Path, variables: dict[str, str]) -> None:
        self.variables, self._rest = variables, b""
        self._lock = threading.Lock()  # runs in several threads may share it
        self._running: set[int] = set()
        self._statuses: dict[int, int] = {}  # of those that have ended, until it is asked for
        self.greeting: bytes | None = None  # once it was waited for
        self._connection, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [python, str(program), str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=variables,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except OSError:
            self._connection.close()
            raise

    def greeted(self) -> bytes | None:
        """What it says of itself when it has imported torch; None or nothing when it does not get there."""
        if self.greeting is None:
            self.greeting = self.line(READY_SECONDS)
        return self.greeting

    def become(self, request: object, out: int) -> subprocess.Popen[bytes] | None:
        """Its own process, which from now on is the program that is asked for."""
        if self.ask(request, out) is None:
            return None
        self._connection.close()
        return self._process

    def ask(self, request: object, out: int) -> int | None:
        """The number of the process that it starts; None: it is of no use any more."""
        with self._lock:
            return self._asked(request, out)

    def _asked(self, request: object, out: int) -> int | None:
        self._connection.settimeout(READY_SECONDS)
        try:
            socket.send_fds(self._connection, [json.dumps(request).encode("ascii") + b"\n"], [out])
        except OSError:
            return None
        while line := self.line(READY_SECONDS):
            number, *status = map(int, line.split())
            if status and number in self._running:  # another one
                self._end_of(number, status[0])
                continue
            self._running.add(number)
            if status:  # it has ended before it could say anything
                self._end_of(number, status[0])
            return number
        return None

    def ended(self, number: int, seconds: float | None) -> int | None:
        """How a process has ended; None when it has not within the time, -9 when all are gone."""
        over = None if seconds is None else time.monotonic() + seconds
        while True:
            with self._lock:
                if number in self._statuses:
                    return self._statuses.pop(number)
                line = self.line(SLICE_SECONDS)
                if line:
                    self._end_of(*map(int, line.split()))
            if line == b"":
                return -signal.SIGKILL
            if line is None and over is not None and time.monotonic() >= over:
                return None
            time.sleep(SLICE_SECONDS / 10)  # another thread's turn

    def _end_of(self, number: int, status: int) -> None:
        self._running.discard(number)
        self._statuses[number] = status

    def line(self, seconds: float | None) -> bytes | None:
        """Its next line; None when there is none within the time, nothing when there will be none any more."""
        self._connection.settimeout(seconds)
        while b"\n" not in self._rest:
            try:
                more = self._connection.recv(4096)
            except (TimeoutError, BlockingIOError):
                return None
            except OSError:
                more = b""
            if not more:
                return b""
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def end(self) -> None:
        """End it."""
        self._connection.close()
        self._process.kill()
        self._process.wait()


class Forked:
    """A running fork, with what the harness asks of a ``subprocess.Popen``."""

    def __init__(self, parent: _Parent, pid: int) -> None:
        self._parent, self.pid = parent, pid
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """The exit status, when it has ended. Raises ``subprocess.TimeoutExpired`` when it has not within the time.

        It is negative for a signal, and -9 when its parent is gone.
        """
        if self.returncode is None:
            status = self._parent.ended(self.pid, timeout)
            if status is None:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            self.returncode = status
        return self.returncode


def _fixed(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that an interpreter has for all its forks."""
    return {k: v for k, v in variables.items() if k not in OWN and not k.startswith(PREFIX)}


class Forks:
    """Starts programs as forks of one interpreter. Use it as a context: the interpreter goes with it.

    ``parent``: the program of the interpreter. It is started with the first program that is to run, and anew when a
    later one wants other variables of the environment.
    """

    def __init__(self, python: str, parent: Path) -> None:
        self._python, self._program = python, parent
        self._possible = sys.platform == "linux"
        self._single = False  # whether an interpreter is there for one program only
        self._starts = threading.Lock()
        self._parent: _Parent | None = None

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def several(self) -> bool:
        """Whether programs can run at the same time, as forks of the interpreter that is there."""
        parent = self._parent
        return parent is not None and parent.greeting == READY

    def prepare(self, variables: Mapping[str, str]) -> None:
        """Begin to import torch now; a program that ``start`` is given with these variables need not wait for it."""
        if self._possible and self._program.exists():
            self._begin(_fixed(variables))

    def start(
        self, program: Path, argument: str, variables: Mapping[str, str], out: int, manner: Manner = USUAL
    ) -> Forked | subprocess.Popen[bytes] | None:
        """Run ``python program argument`` with stdout and stderr to ``out``, in a session of its own.

        None when it cannot be a fork.
        """
        if not self._possible or not self._program.exists():
            return None
        fixed = _fixed(variables)
        own = {key: value for key, value in variables.items() if key not in fixed}
        told = {
            "program": str(program),
            "argument": argument,
            "folder": str(Path.cwd()),
            "variables": own,
            **asdict(manner),
        }
        if not self._starts.acquire(blocking=not self._single):
            return None  # the one interpreter is being waited for
        try:
            return self._fork(told, fixed, out)
        finally:
            self._starts.release()

    def _fork(self, told: object, fixed: dict[str, str], out: int) -> Forked | subprocess.Popen[bytes] | None:
        if self._single:
            return self._next(told, fixed, out)
        if self._parent is not None and self._parent.variables == fixed and self._parent.greeting == READY:
            number = self._parent.ask(told, out)
            if number is not None:
                return Forked(self._parent, number)
            self.close()
        if self._opened(fixed) == SINGLE:
            return self._next(told, fixed, out)
        number = self._parent.ask(told, out) if self._parent is not None else None
        if self._parent is not None and number is not None:
            return Forked(self._parent, number)
        self.close()
        self._possible = False
        return None

    def _next(self, told: object, variables: dict[str, str], out: int) -> subprocess.Popen[bytes] | None:
        """The interpreter that waits becomes the program, and another one begins to import torch."""
        if self._parent is not None and self._parent.variables != variables:
            self.close()
        if self._parent is None:
            self._begin(variables)
        parent, self._parent = self._parent, None
        process = parent.become(told, out) if parent is not None and parent.greeted() == SINGLE else None
        if process is not None:
            self._begin(variables)
            return process
        if parent is not None:
            parent.end()
        self._possible = self._single = False
        return None

    def close(self) -> None:
        """End the interpreter."""
        if self._parent is not None:
            self._parent.end()
        self._parent = None

    def _begin(self, variables: dict[str, str]) -> None:
        try:
            self._parent = _Parent(self._python, self._program, variables)
        except OSError:  # the caller will say so
            self._parent = None

    def _opened(self, variables: dict[str, str]) -> bytes | None:
        """What a new interpreter, or the one that was prepared, says of itself, when it is of use."""
        if self._parent is None or self._parent.variables != variables:
            self.close()
            self._begin(variables)
        if self._parent is None:
            return None
        greeting = None
        try:
            greeting = self._parent.greeted()
        finally:
            self._single = greeting == SINGLE and (os.cpu_count() or 1) >= CORES
            if greeting != READY and not self._single:
                self.close()
        return greeting if self._parent is not None else None
