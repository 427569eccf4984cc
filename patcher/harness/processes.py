"""Processes, each in a session of its own, with limits: started, watched, and ended with all that they have started."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from patcher.harness.forks import Forked, Forks, Manner

TAIL_LINES, LINE_CHARACTERS = 12, 400
LOG_BYTES = 2**25  # a log that grows beyond is emptied: of a model that prints without end the last lines are enough
COMPARING = "differences.py"
LISTEN_SECONDS, LOOK_SECONDS = 0.1, 0.5  # for the end of a process, and at its log and memory
UNTIMED = ("vary-batch", "vary-sequence", "fusions")  # probes that only count
_CONTAINER = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
WHERE = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None  # asks a worker that hangs for its stack
WHERE_SECONDS = 0.3  # that it has for the answer
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")
_OURS = ("TORCH_LOGS", "TORCH_TRACE", "TORCHDYNAMO_DISABLE")  # variables that the run decides about
LOGS = "graph_breaks,recompiles,cudagraphs,perf_hints"

Json = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """A process has started, is running, or has ended with ``status``. ``seconds``: since the run began."""

    what: Literal["start", "running", "end"]
    case: str
    variant: str
    status: str
    number: int
    of: int
    seconds: float


Progress = Callable[[Event], None]


@dataclass(frozen=True)
class Job:
    """What a process is to do. ``asked``: its part of the plan."""

    program: str
    asked: Json
    folder: Path
    case: str
    variant: str


@dataclass
class _Running:
    """A process, and what is known of it. ``ended``: for what it was ended by us (status, message)."""

    job: Job
    process: Forked | subprocess.Popen[bytes]
    log: IO[bytes]
    limit: float
    start: float
    copying: threading.Thread | None = None
    looked: float = 0.0
    heard: float = 0.0
    ended: tuple[str, str] | None = None


class RunError(Exception):
    """No worker can be started; the message is one line."""


class Processes:
    """Those of one run of ``plan``; ``programs``: where they lie. ``stop``: once it is set they are ended.

    ``expected``: how many there will be, to be told. ``device``: what the case computes on, once it is known.
    """

    def __init__(
        self, plan: Json, programs: Path, python: str, progress: Progress | None, forks: Forks, stop: threading.Event
    ) -> None:
        self._plan, self._programs, self._python = plan, programs, python
        self._progress, self._forks, self.stop = progress, forks, stop
        self._counting, self.expected, self.device = bool(plan.get("counting")), 0, "cpu"
        self._start, self._begun, self._over = time.monotonic(), 0, 0

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return round(time.monotonic() - self._start, 1)

    def spare(self, job: Job, status: str) -> None:
        """Count one that need not run: an earlier run has told what it would."""
        self._begun += 1
        self._tell("end", job, status)

    def told(self, jobs: Sequence[Job], most: int = 1) -> list[Json]:
        """So many at a time. Whatever happens to one, the answer has a status and a message."""
        at_once = min(most, len(jobs))
        waiting, running, told = deque(enumerate(jobs)), dict[int, _Running](), dict[int, Json]()
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    number, job = waiting.popleft()
                    running[number] = self._start_of(job, at_once)
                for number, one in list(running.items()):
                    if self._is_over(one, LISTEN_SECONDS / len(running)):
                        told[number] = self._outcome(one)
                        del running[number]
        finally:
            for one in running.values():
                _stop(one)
        return [told[number] for number in range(len(jobs))]

    def _start_of(self, job: Job, at_once: int) -> _Running:
        if self.stop.is_set():
            raise RunError("it was stopped")
        self._begun += 1
        self._tell("start", job, "")
        job.folder.mkdir(parents=True)
        limit = self._plan["seconds"]
        if self._plan.get("until") and job.program != COMPARING:  # what was measured is also compared
            limit = max(1.0, min(limit, self._plan["until"] - time.monotonic()))
        spec = job.folder / "spec.json"
        write_json(spec, {**self._plan, "seconds": limit, "where": WHERE, "job": job.asked})
        log = (job.folder / "log.txt").open("ab")  # also what is written after the log was emptied goes to its end
        try:
            process = self._process(job, spec, log, self._threads(at_once))
        except BaseException:
            log.close()
            raise
        now = time.monotonic()
        return _Running(job, process, log, limit, now, _copying(process, log), heard=now)

    def _threads(self, at_once: int) -> int:
        """How many each process may use; 0: its own choice, for with others sums have other bits."""
        return max(1, cores() // at_once) if at_once > 1 and (self._counting or not self._plan.get("beside")) else 0

    def _process(self, job: Job, spec: Path, log: IO[bytes], threads: int) -> Forked | subprocess.Popen[bytes]:
        file, variables = self._programs / job.program, self._variables(job.asked, job.folder)
        process: Forked | subprocess.Popen[bytes] | None = None
        if not (self._plan["verbose"] or self._plan.get("trace")):  # torch reads what to log when it is imported
            compiled, probe = job.asked.get("kind") == "compiled", job.asked.get("probe")
            generates = self._plan.get("backend") == "inductor" and (compiled or bool(probe))
            untimed = (is_untimed(self._plan) and compiled) or probe in UNTIMED
            manner = Manner(generates, untimed, threads, self._plan.get("workers", 0), self.device != "cpu")
            process = self._forks.start(file, str(spec), variables, log.fileno(), manner)
        return process or self._started([self._python, str(file), str(spec)], variables, log)

    def _outcome(self, one: _Running) -> Json:
        """What a process that is over has told, or what its end says."""
        folder, code = one.job.folder, _stop(one)
        tail = _tail(folder / "log.txt")
        told = {"status": one.ended[0], "message": one.ended[1]} if one.ended else None
        result: Json = told or _result(folder / "result.json", code, tail)
        result["tail"] = [] if result["status"] == "ok" else tail
        shutil.rmtree(folder / "cache", ignore_errors=True)
        self._tell("end", one.job, result["status"])
        return {**result, "seconds": round(time.monotonic() - one.start, 1)}

    def _started(self, command: list[str], variables: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        errors = subprocess.PIPE if self._plan["verbose"] else log
        try:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=errors, env=variables, start_new_session=True
            )
        except OSError as error:
            raise RunError(f"{command[0]} cannot be started: {error.strerror}") from None

    def _is_over(self, one: _Running, seconds: float) -> bool:
        """Whether it ends within that time, or is to be ended."""
        if has_ended(one.process, seconds):
            return True
        if self.stop.is_set():
            one.ended = "skipped", "it was stopped"
            return True
        now, memory = time.monotonic(), self._plan["memory"]
        if now > one.start + one.limit:
            cut = one.job.program != COMPARING and 0 < self._plan.get("until", 0.0) <= now
            one.ended = "timeout", "the budget was used up" if cut else f"did not end within {one.limit:g} seconds"
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if WHERE is not None:
                    os.kill(one.process.pid, WHERE)
                    has_ended(one.process, WHERE_SECONDS)
            return True
        if now >= one.heard + 1:
            one.heard = now
            self._tell("running", one.job, "")
        if now >= one.looked:
            one.looked = now + LOOK_SECONDS
            if os.fstat(one.log.fileno()).st_size > LOG_BYTES:
                os.ftruncate(one.log.fileno(), 0)
            used = _resident(one.process.pid) if memory else 0
            if memory and used > memory:
                one.ended = "out-of-memory", f"used {used / 2**30:.1f} GiB, the limit is {memory / 2**30:.1f} GiB"
                return True
        return False

    def _variables(self, job: Json, folder: Path) -> dict[str, str]:
        """A fresh cache for each process, so that every compilation is a cold one; or the one that is named for it."""
        shared = (self._plan.get("caches") or {}).get(job.get("tree")) if job.get("kind") == "compiled" else None
        given, cache = usual_variables(), Path(shared or folder / "cache")
        if self._plan["verbose"]:
            given["TORCH_LOGS"] = ",".join(filter(None, (os.environ.get("TORCH_LOGS", ""), LOGS)))
        given.update(TORCHINDUCTOR_CACHE_DIR=str(cache / "inductor"), TRITON_CACHE_DIR=str(cache / "triton"))
        if job.get("kind") in ("eager", "float64"):
            given["TORCHDYNAMO_DISABLE"] = "1"
        if job.get("trace"):
            given["TORCH_TRACE"] = job["trace"]
        return given

    def _tell(self, what: Literal["start", "running", "end"], job: Job, status: str) -> None:
        self._over += what == "end"
        if self._progress is not None:
            total = max(self.expected, self._begun)
            number = self._over if what == "end" else self._begun
            self._progress(Event(what, job.case, job.variant, status, number, total, self.seconds))


def is_untimed(plan: Json) -> bool:
    """Whether nobody asks how long what is compiled takes."""
    return bool(plan.get("counting") or plan.get("untimed"))


def usual_variables() -> dict[str, str]:
    """The environment of every worker, without what each has for itself."""
    given = {key: value for key, value in os.environ.items() if key not in _OURS}
    return {**given, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}


@contextlib.contextmanager
def signals_as_exceptions() -> Iterator[None]:
    """Turn the signals that would end us at once into ``SystemExit``, unless someone else has decided about them.

    Only the main thread can; in others nothing is changed.
    """

    def leave(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _result(out: Path, code: int, tail: list[str]) -> Json:
    """What the process wrote down, or what its end says."""
    if out.exists():
        with contextlib.suppress(ValueError):
            written: Json = json.loads(out.read_text(encoding="utf-8"))
            return written
        return {"status": "error", "message": "left a result that cannot be read"}
    if any(word in line for word in OUT_OF_MEMORY for line in tail):
        return {"status": "out-of-memory", "message": "ended for want of memory"}
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        return {"status": "error", "message": f"was ended by {name}"}
    return {"status": "exited", "message": f"ended by itself with exit status {code}, without a result"}


def _stop(one: _Running) -> int:
    """End a process with all that it has started and left behind; its exit status."""
    try:
        if one.process.returncode is None or isinstance(one.process, subprocess.Popen):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(one.process.pid, signal.SIGKILL)
        code: int = one.process.wait()
        if one.copying:
            one.copying.join(2)
        return code
    finally:
        one.log.close()


def has_ended(process: Forked | subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it ends within that time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


def _resident(session: int) -> int:
    """Bytes of resident memory of all processes of a session; 0 where there is no /proc to tell."""
    return sum(_pages_of(session)) * os.sysconf("SC_PAGE_SIZE")


def _pages_of(session: int) -> Iterator[int]:
    for name in _running():
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended
            if os.getsid(int(name)) == session:
                yield int(Path("/proc", name, "statm").read_text(encoding="ascii").split()[1])


def _running() -> list[str]:
    """The numbers of all processes, where the system tells them."""
    with contextlib.suppress(OSError), os.scandir("/proc") as entries:
        return [entry.name for entry in entries if entry.name.isdecimal()]
    return []


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_memory() -> int:
    """Bytes that the machine, and the container that this runs in, has to spare; 0 where nobody tells."""
    free = []
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1]))
    for most, used in _CONTAINER:
        with contextlib.suppress(OSError, ValueError):  # "max"
            free.append(int(Path(most).read_text(encoding="ascii")) - int(Path(used).read_text(encoding="ascii")))
    return max(0, min(free, default=0))


def _copying(process: Forked | subprocess.Popen[bytes], log: IO[bytes]) -> threading.Thread | None:
    """What copies the worker's stderr, when it is to be heard."""
    heard = process.stderr if isinstance(process, subprocess.Popen) else None
    if heard is None:
        return None
    copying = threading.Thread(target=_copy, args=(heard, log), daemon=True)
    copying.start()
    return copying


def _copy(source: IO[bytes], log: IO[bytes]) -> None:
    """What a worker writes to stderr goes to ours as well as to the log."""
    for line in source:
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
        with contextlib.suppress(ValueError, OSError):
            log.write(line)
            log.flush()


def _tail(log: Path) -> list[str]:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - 20_000))
        lines = stream.read().decode("utf-8", "replace").splitlines()
    kept = [line.rstrip()[:LINE_CHARACTERS] for line in lines if line.strip()]
    return kept[_stack(kept) :][:TAIL_LINES]


def _stack(lines: list[str]) -> int:
    """Where to read in a log: where the last stack in it begins, whose innermost line comes first, or near the end."""
    crashes = [number for number, line in enumerate(lines) if line.startswith("Fatal Python error: ")]
    stacks = [number for number, line in enumerate(lines) if line.endswith("(most recent call first):")]
    if crashes:
        return crashes[-1]
    if stacks and all(line.startswith("  File ") for line in lines[stacks[-1] + 1 :]):
        return stacks[-1]
    return max(0, len(lines) - TAIL_LINES)


def write_json(path: Path, value: Json) -> None:
    """Write a JSON document at once. NaN and the infinities, which JSON lacks, become their names."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(_plain(value), indent=1), encoding="utf-8")
    part.replace(path)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
