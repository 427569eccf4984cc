"""Start the workers of a plan, each in a process group of its own, with limits. Standard library only.

    python run.py PLAN.json

One process per variant (original or patched source, eager or compiled, in each mode), then one per case that compares
what they saved, and one for each experiment that the plan asks for. The outcome is ``results.json`` beside the plan;
docs/harness.md describes both. What it starts and imports lies in the same folder, and can be carried with it to a
machine that has torch.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING or __name__ != "__main__":
    from patcher.harness.forks import Forked, Forks
    from patcher.harness.tuning import Tuning
else:  # carried
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from forks import Forks
    from tuning import Tuning

SCHEMA = 1
HERE = Path(__file__).resolve().parent
TAIL_LINES, LINE_CHARACTERS = 12, 400
LOG_BYTES = 2**25  # a log that grows beyond is emptied: of a model that prints without end the last lines are enough
LISTEN_SECONDS, LOOK_SECONDS = 0.1, 0.5  # for the end of a process, and at its log and memory
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")
LOGS = "graph_breaks,recompiles,cudagraphs,perf_hints"
_COMPILING = ("modes", "backend", "counting", "untimed")  # of a plan: what only matters for compiled variants
KEPT, TOLD = "kept.json", "told.json"  # in a work folder that stays: of what run it is, and what a variant has told

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


class RunError(Exception):
    """No worker can be started; the message is one line."""


def run(
    plan_file: Path, python: str = sys.executable, progress: Progress | None = None, forks: Forks | None = None
) -> Json:
    """Run everything that the plan says, one process at a time, and return what ``results.json`` then holds.

    ``forks``: from ``forking``, for several runs with one ``python``. However this is left, also by an exception,
    Ctrl-C, SIGTERM or SIGHUP, no worker is running any more. Raises ``RunError``.
    """
    with _signals_as_exceptions(), contextlib.ExitStack() as stack:
        starting = forks or stack.enter_context(forking(python))
        return _Run(plan_file.resolve(), python, progress, starting).everything()


def forking(python: str) -> Forks:
    """What starts workers quickly; a context."""
    return Forks(python, HERE / "parent.py")


class _Run:
    """One run of a plan."""

    def __init__(self, plan_file: Path, python: str, progress: Progress | None, forks: Forks) -> None:
        self._plan: Json = json.loads(plan_file.read_text(encoding="utf-8"))
        self._full = absolute(self._plan, plan_file.parent)
        self._folder, self._python, self._progress = plan_file.parent, python, progress
        self._work, self._forks = self._folder / "work", forks
        self._start, self._number = time.monotonic(), 0
        self._environment: Json = {}
        self._identity = _identity(self._full, python)
        self._earlier = _earlier(self._full.get("reuse"), self._work, self._identity)
        self._counting = bool(self._plan.get("counting"))

    def everything(self) -> Json:
        """All cases."""
        shutil.rmtree(self._work, ignore_errors=True)
        keep = self._plan.get("keep")
        if keep:
            self._work.mkdir(parents=True)
            write_json(self._work / KEPT, self._identity)
        started = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        try:
            cases = [self._case(number) for number in range(len(self._plan["cases"]))]
        finally:
            if not keep:
                shutil.rmtree(self._work, ignore_errors=True)
        told = ("tool", "command", "tree", "modes", "backend", "promise", "quick", "settings")
        overlay = [{k: entry[k] for k in ("shown", "before", "after", "changed")} for entry in self._plan["overlay"]]
        results = {
            "schema": SCHEMA,
            "plan": {**{key: self._plan.get(key) for key in told}, "overlay": overlay},
            "environment": self._environment,
            "started": started,
            "seconds": round(time.monotonic() - self._start, 1),
            "cases": cases,
        }
        write_json(self._folder / "results.json", results)
        return results

    def _case(self, number: int) -> Json:
        case = self._plan["cases"][number]
        work = self._work / f"{number:03d}"
        variants: list[Json] = []
        told: Json = {"name": case["name"], "variants": variants, "comparisons": [], "compare_error": None}
        reference = self._measure(work, number, told, "original", "eager")
        if reference["status"] == "ok":
            known = {"draws_random": reference["draws_random"], "sizes": reference.pop("sizes", None)}
            trees = self._trees(work, number, told, **known)
            for mode in () if self._tunes_alone else self._plan["modes"]:
                for tree in trees:
                    self._measure(work, number, told, tree, "compiled", mode, **known)
            if self._plan.get("repeat") and self._plan["modes"] and not self._tunes_alone:
                told["repeated"] = self._repeated(work, number, told, **known)
            if not (self._tunes_alone or self._counting):
                job = {"case": number, "variants": variants, "folder": str(work)}
                compared = self._job("differences.py", job, work / "compare", case["name"], "comparing")
                told["comparisons"] = compared.get("comparisons", [])
                told["compare_error"] = None if compared["status"] == "ok" else compared["message"]
            if self._plan.get("probes"):
                told["probes"] = [
                    self._probe(name, work, number, case["name"], **known) for name in self._plan["probes"]
                ]
            if self._plan.get("tune"):
                told.setdefault("probes", []).append(self._tuned(work, number, told, **known))
        for key, standard in (("train", False), ("device", None), ("dtype", None), ("tolerance", 1e-3)):
            told.setdefault(key, case.get(key) if case.get(key) is not None else standard)
        if not self._plan.get("keep"):
            shutil.rmtree(work, ignore_errors=True)
        return told

    def _trees(self, work: Path, number: int, told: Json, **known: Any) -> tuple[str, ...]:
        """What is to be compiled: the patched source only when it runs in eager mode, which is measured here."""
        patch, settings = self._plan["overlay"], self._plan.get("settings")
        if not patch and not settings:  # it is the original once more
            return ("original",)
        if self._counting:
            return "original", "patched"
        if patch:
            patched = self._measure(work, number, told, "patched", "eager", **known)
        else:  # eager code does not ask for settings: it is the original's
            patched = {**told["variants"][0], "tree": "patched"}
            told["variants"].append(patched)
        if patch and not self._plan["quick"]:
            self._measure(work, number, told, "original", "float64", **known)
        return ("original", "patched") if patched["status"] == "ok" else ("original",)

    def _measure(
        self, work: Path, number: int, told: Json, tree: str, kind: str, mode: str | None = None, **known: object
    ) -> Json:
        """One variant, added to what is told about the case."""
        name = "-".join(part for part in (tree, kind, mode) if part)
        job = {"case": number, "tree": tree, "kind": kind, "mode": mode, "folder": str(work / name), **known}
        variant = f"{tree} {kind}" + (f" ({mode})" if mode else "")
        if self._counting and mode:
            variant = f"{tree} counted ({self._plan['backend']})"
        result = self._taken(work / name, told["name"], variant, kind) if tree == "original" else None
        if result is None:
            trace = self._trace(number, mode) if (tree, kind) == ("original", "compiled") else {}
            result = {**self._worked(job | trace, told, variant), **trace}
        self._environment.update(result.pop("environment", {}))
        told.update(result.pop("case", {}))
        told["variants"].append({"tree": tree, "kind": kind, "mode": mode, "folder": name, **result})
        return result

    def _repeated(self, work: Path, number: int, told: Json, **known: object) -> Json:
        """Original compiled in the first mode once more: what is another thing then was chance."""
        mode = self._plan["modes"][0]
        first = next(v for v in told["variants"] if (v["tree"], v["mode"]) == ("original", mode))
        if first["status"] == "timeout":
            return {"status": "skipped", "message": "the first run did not come to its end"}
        how = f"counted ({self._plan['backend']})" if self._counting else f"compiled ({mode})"
        folder, variant = work / f"original-compiled-{mode}-again", f"original {how} again"
        job = {"case": number, "tree": "original", "kind": "compiled", "mode": mode, "folder": str(folder), **known}
        result = self._taken(folder, told["name"], variant, "compiled") or self._worked(job, told, variant)
        return {key: value for key, value in result.items() if key not in ("environment", "case")}

    def _probe(self, name: str, work: Path, number: int, case: str, **known: object) -> Json:
        """One experiment on the original."""
        folder = work / f"probe-{name}"
        mode = next(iter(self._plan["modes"]), "default")
        job = {"case": number, "tree": "original", "probe": name, "mode": mode, "folder": str(folder), **known}
        result = self._job("probes.py", job, folder, case, f"probe {name}")
        return {**{key: value for key, value in result.items() if key not in ("environment", "case")}, "name": name}

    @property
    def _tunes_alone(self) -> bool:
        return bool((self._plan.get("tune") or {}).get("alone"))

    def _tuned(self, work: Path, number: int, told: Json, **known: object) -> Json:
        """The ways to compile the case, and how far what each computes is from original eager."""
        asked, start = self._plan["tune"], time.monotonic()
        tree = "patched" if self._plan["overlay"] or self._plan.get("settings") else "original"

        def run_way(job: Json, variant: str, seconds: float) -> Json:
            result = self._job("way.py", job, Path(job["folder"]), told["name"], variant, seconds)
            return {key: value for key, value in result.items() if key not in ("environment", "case")}

        known |= {"case": number, "tree": tree, "under": self._plan.get("settings", [])}
        tuning = Tuning(asked, work, run_way, self._plan["seconds"], known)
        try:
            found = tuning.run()
        finally:
            tuning.clear()
        rows = [row for row in found.get("rows", ()) if row["status"] == "ok" and row.get("warm")]
        if rows:
            reference = next(v for v in told["variants"] if (v["tree"], v["kind"]) == ("original", "eager"))
            kept = [{"tree": tree, "kind": "compiled", "mode": row["name"], **row} for row in rows]
            job = {"case": number, "variants": [reference, *kept], "folder": str(work), "weights": False}
            compared = self._job("differences.py", job, work / "compare-ways", told["name"], "comparing")
            rows_apart = {one["mode"]: one for one in compared.get("comparisons", [])}
            for row in rows:
                row["comparison"] = rows_apart.get(row["name"])
            found["compare_error"] = None if compared["status"] == "ok" else compared["message"]
        return {"tail": [], **found, "name": "tune", "seconds": round(time.monotonic() - start, 1)}

    def _worked(self, job: Json, told: Json, variant: str) -> Json:
        """What a worker tells; written down beside what it has saved when the work folder stays."""
        folder = Path(job["folder"])
        result = self._job("worker.py", job, folder, told["name"], variant)
        if self._plan.get("keep"):
            write_json(folder / TOLD, result)
        return result

    def _taken(self, folder: Path, case: str, variant: str, kind: str) -> Json | None:
        """What an earlier run has told of a variant of the original; its files then lie in ``folder``."""
        if self._earlier is None or kind not in self._earlier.kinds:
            return None
        source = (self._earlier.work / folder.relative_to(self._work)).resolve()
        try:
            result: Json = json.loads((source / TOLD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(source, target_is_directory=True)
        self._number += 1
        self._tell("end", case, variant, result["status"])
        return {**result, "reused": True}

    def _trace(self, number: int, mode: str | None) -> Json:
        """The folder for torch's structured trace of a variant, when one is wanted; empty of earlier traces."""
        if not self._full.get("trace"):
            return {}
        case = re.sub(r"[^\w.-]", "_", self._plan["cases"][number]["name"])
        folder = Path(self._full["trace"], f"{number + 1}-{case}", str(mode))
        for old in folder.glob("dedicated_log_torch_trace_*"):
            old.unlink()
        return {"trace": str(folder)}

    def _job(
        self, program: str, job: Json, folder: Path, case: str, variant: str, seconds: float | None = None
    ) -> Json:
        """One process. Whatever happens to it, the answer has a status and a message. ``seconds``: its own limit."""
        self._number += 1
        self._tell("start", case, variant, "")
        folder.mkdir(parents=True)
        out, log, spec = folder / "result.json", folder / "log.txt", folder / "spec.json"
        limit = self._plan["seconds"] if seconds is None else seconds
        write_json(spec, {**self._full, "seconds": limit, "job": job})
        start = time.monotonic()
        with log.open("ab") as stream:  # also what is written after the log was emptied goes to its end
            ended, code = self._ended(program, job, folder, stream, (case, variant), limit)
        tail = _tail(log)
        result: Json = {"status": ended[0], "message": ended[1]} if ended else _result(out, code, tail)
        result["tail"] = [] if result["status"] == "ok" else tail
        shutil.rmtree(folder / "cache", ignore_errors=True)
        self._tell("end", case, variant, result["status"])
        return {**result, "seconds": round(time.monotonic() - start, 1)}

    def _ended(
        self, program: str, job: Json, folder: Path, log: IO[bytes], named: tuple[str, str], seconds: float
    ) -> tuple[tuple[str, str] | None, int]:
        """Run a process to its end: for what it was ended by us (status, message), and its exit status."""
        file, spec, variables = HERE / program, str(folder / "spec.json"), self._variables(job, folder)
        process: Forked | subprocess.Popen[bytes] | None = None
        if not (self._plan["verbose"] or self._plan.get("trace")):  # torch reads what to log when it is imported
            generates = self._plan.get("backend") == "inductor" and (
                "probe" in job or "way" in job or job.get("kind") == "compiled"
            )
            process = self._forks.start(file, spec, variables, log.fileno(), generates)
        process = process or self._started([self._python, str(file), spec], variables, log)
        heard = process.stderr if isinstance(process, subprocess.Popen) else None
        copying = threading.Thread(target=_copy, args=(heard, log), daemon=True) if heard else None
        try:
            if copying:
                copying.start()
            ended = self._waited(process, log, named, seconds)
        finally:
            if process.returncode is None or isinstance(process, subprocess.Popen):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)  # also what the worker has started and left behind
            code = process.wait()
        if copying:
            copying.join(2)
        return ended, code

    def _started(self, command: list[str], variables: dict[str, str], log: IO[bytes]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.PIPE if self._plan["verbose"] else log,
                env=variables,
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(f"{command[0]} cannot be started: {error.strerror}") from None

    def _waited(
        self, process: Forked | subprocess.Popen[bytes], log: IO[bytes], named: tuple[str, str], seconds: float
    ) -> tuple[str, str] | None:
        memory = self._plan["memory"]
        heard = time.monotonic()
        deadline, look = heard + seconds, 0.0
        while not _has_ended(process, LISTEN_SECONDS):
            now = time.monotonic()
            if now > deadline:
                return "timeout", f"did not end within {seconds:g} seconds"
            if now >= heard + 1:
                heard = now
                self._tell("running", *named, "")
            if now >= look:
                look = now + LOOK_SECONDS
                if os.fstat(log.fileno()).st_size > LOG_BYTES:
                    os.ftruncate(log.fileno(), 0)
                used = _resident(process.pid) if memory else 0
                if memory and used > memory:
                    return "out-of-memory", f"used {used / 2**30:.1f} GiB, the limit is {memory / 2**30:.1f} GiB"
        return None

    def _variables(self, job: Json, folder: Path) -> dict[str, str]:
        """A fresh cache for each process, so that every compilation is a cold one; or the one that the job names."""
        given, cache = dict(os.environ), Path(job.get("cache") or folder / "cache")
        logs = given.pop("TORCH_LOGS", "")
        given.pop("TORCH_TRACE", None)
        if self._plan["verbose"]:
            given["TORCH_LOGS"] = ",".join(filter(None, (logs, LOGS)))
        given.update(
            PYTHONDONTWRITEBYTECODE="1",
            PYTHONHASHSEED="0",
            PYTHONUNBUFFERED="1",
            TORCHINDUCTOR_CACHE_DIR=str(cache / "inductor"),
            TRITON_CACHE_DIR=str(cache / "triton"),
        )
        given.pop("TORCHDYNAMO_DISABLE", None)
        if job.get("kind") in ("eager", "float64"):
            given["TORCHDYNAMO_DISABLE"] = "1"
        if job.get("trace"):
            given["TORCH_TRACE"] = job["trace"]
        return given

    def _tell(self, what: Literal["start", "running", "end"], case: str, variant: str, status: str) -> None:
        if self._progress is not None:
            modes, quick = len(self._plan["modes"]), self._plan["quick"]
            asked = bool(modes and self._plan.get("repeat")) + len(self._plan.get("probes", ()))
            if self._tunes_alone:
                modes = 0
            patch, settings = bool(self._plan["overlay"]), bool(self._plan.get("settings"))
            compiled = modes * (1 + (patch or settings))
            each = 1 + compiled if self._counting else 2 - self._tunes_alone + patch * (1 + (not quick)) + compiled
            total = max(len(self._plan["cases"]) * (each + asked), self._number)
            seconds = round(time.monotonic() - self._start, 1)
            self._progress(Event(what, case, variant, status, self._number, total, seconds))


def _identity(plan: Json, python: str) -> Json:
    """What two runs must have in common for one to use the original's figures of the other."""
    same = {key: plan.get(key) for key in ("schema", "base", "cases", *_COMPILING, "quick")}
    files = [_sha256(case["file"]) for case in plan["cases"]]
    return {**same, "files": files, "programs": [_sha256(HERE / "worker.py")], "python": python}


def _sha256(file: str | Path) -> str | None:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


@dataclass(frozen=True)
class _Earlier:
    """The work folder of an earlier run, and the kinds of variants that this one would measure in the same way."""

    work: Path
    kinds: tuple[str, ...]


def _earlier(folder: str | None, own: Path, identity: Json) -> _Earlier | None:
    """An earlier run, when some of what it has measured is what this one would measure."""
    if not folder or Path(folder).resolve() == own.resolve():
        return None
    with contextlib.suppress(OSError, ValueError):
        known = json.loads((Path(folder) / KEPT).read_text(encoding="utf-8"))
        if known in (identity, {**identity, "untimed": None}):  # that it was timed does no harm
            return _Earlier(Path(folder), ("eager", "float64", "compiled"))
        if _uncompiled(known) == _uncompiled(identity):
            return _Earlier(Path(folder), ("eager", "float64"))
    return None


def _uncompiled(identity: Json) -> Json:
    return {key: value for key, value in identity.items() if key not in _COMPILING}


@contextlib.contextmanager
def _signals_as_exceptions() -> Iterator[None]:
    """Turn the signals that would end us at once into ``SystemExit``, unless someone else has decided about them."""

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


def _has_ended(process: Forked | subprocess.Popen[bytes], seconds: float) -> bool:
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
    return [line.rstrip()[:LINE_CHARACTERS] for line in lines if line.strip()][-TAIL_LINES:]


def absolute(plan: Json, folder: Path) -> Json:
    """The plan with its paths, which may be relative to its folder, made absolute."""

    def full(path: str) -> str:
        return str(folder / path) if path else path

    keys = ("file", "patched")
    overlay = [{k: full(v) if k in keys else v for k, v in entry.items()} for entry in plan["overlay"]]
    cases = [{**case, "file": full(case["file"])} for case in plan["cases"]]
    path = [full(root) for root in plan["path"]]
    asked = {key: full(plan[key]) for key in ("reuse", "trace") if plan.get(key)}
    return {**plan, **asked, "base": full(plan["base"]), "path": path, "overlay": overlay, "cases": cases}


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


def main() -> None:
    """The command line, for a folder that was carried to another machine: progress as JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    options = parser.parse_args()

    def show(event: Event) -> None:
        if event.what == "running":
            return
        sys.stdout.write(json.dumps(asdict(event)) + "\n")
        sys.stdout.flush()

    run(options.plan, progress=show)


if __name__ == "__main__":
    main()
