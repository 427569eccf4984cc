"""Start the workers of a plan, each in a process group of its own, with limits. Standard library only.

One process per variant (original or patched source, eager or compiled, in each mode), then one per case that compares
what they saved, and one for each experiment that the plan asks for. The outcome is ``results.json`` beside the plan;
docs/harness.md describes both.
"""

from __future__ import annotations

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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from patcher.harness.forks import Forked, Forks, Manner

SCHEMA = 1
HERE = Path(__file__).resolve().parent
TAIL_LINES, LINE_CHARACTERS = 12, 400
LOG_BYTES = 2**25  # a log that grows beyond is emptied: of a model that prints without end the last lines are enough
COMPARING = "differences.py"
LISTEN_SECONDS, LOOK_SECONDS = 0.1, 0.5  # for the end of a process, and at its log and memory
START_SECONDS = 30  # for another run to begin
PROGRAMS = {"fusions": "fusions.py"}  # of probes that have one of their own
UNTIMED = ("vary-batch", "vary-sequence", "fusions")  # probes that only count
_CONTAINER = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
WHERE = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None  # asks a worker that hangs for its stack
WHERE_SECONDS = 0.3  # that it has for the answer
AS_ROUNDING = 3  # times what eager code makes of weights that are moved by a rounding
MOST_ROUNDED = 0.75  # relative: a tensor that is gone differs by 1
NEAR = (0.1, 0.1)  # relative, of outputs; of gradients and state: more of a difference is no branch that rounding took
ROOM = 2  # for each of several processes at a time: times the memory that the original took in eager mode
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "Cannot allocate memory", "MemoryError", "bad_alloc")
_OURS = ("TORCH_LOGS", "TORCH_TRACE", "TORCHDYNAMO_DISABLE")  # variables that the run decides about
LOGS = "graph_breaks,recompiles,cudagraphs,perf_hints"
_COMPILING = ("modes", "backend", "counting", "untimed")  # of a plan: what only matters for compiled variants
KEPT, TOLD = "kept.json", "told.json"  # in a work folder that stays: of what run it is, and what a variant has told

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_INTEGERS = r"(?:u?int\d+|bool) \([^)]*\)"
_OF_INTEGERS = re.compile(
    rf"call (\d+)( \(repeated, pass \d+\))? [^:]*: (?:other values \({_INTEGERS}\)|{_INTEGERS} became {_INTEGERS})"
)
_LONGER = 3
_ALIKE = 10  # times as much: compiling the original may differ from eager code by rounding that grows
_FIGURES = ("bitwise", "mae", "max", "relative", "worst", "finite")  # of a row of differences

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
class _Job:
    """What a process is to do. ``asked``: its part of the plan."""

    program: str
    asked: Json
    folder: Path
    case: str
    variant: str


@dataclass
class _Running:
    """A process, and what is known of it. ``ended``: for what it was ended by us (status, message)."""

    job: _Job
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


def run(
    plan_file: Path,
    python: str = sys.executable,
    progress: Progress | None = None,
    forks: Forks | None = None,
    stop: threading.Event | None = None,
) -> Json:
    """Run everything that the plan says, and return what ``results.json`` then holds.

    What is timed runs alone, what is only counted at the same time when there are cores and memory for it.

    ``forks``: from ``forking``, for several runs with one ``python``, in several threads too. ``stop``: once it is set
    the workers are ended, and no other starts. However this is left, also by an exception,
    Ctrl-C, SIGTERM or SIGHUP, no worker is running any more. Raises ``RunError``.
    """
    with signals_as_exceptions(), contextlib.ExitStack() as stack:
        starting = forks or stack.enter_context(forking(python))
        return _Run(plan_file.resolve(), python, progress, starting, stop or threading.Event()).everything()


def forking(python: str, begin: bool = False) -> Forks:
    """What starts workers quickly; a context. ``begin``: import torch at once, not with the first worker."""
    forks = Forks(python, HERE / "parent.py")
    if begin:
        forks.prepare(usual_variables())
    return forks


class _Run:
    """One run of a plan."""

    def __init__(
        self, plan_file: Path, python: str, progress: Progress | None, forks: Forks, stop: threading.Event
    ) -> None:
        self._stop = stop
        self._plan: Json = json.loads(plan_file.read_text(encoding="utf-8"))
        self._plan["overlay"] = served(self._plan["overlay"], plan_file.parent)
        self._folder, self._python, self._progress = plan_file.parent, python, progress
        self._work, self._forks = self._folder / "work", forks
        self._start, self._begun, self._over = time.monotonic(), 0, 0
        self._environment: Json = {}
        self._device = "cpu"  # until the first variant has told
        self._identity = _identity(self._plan, python)
        if self._plan.get("beside"):
            self._await(Path(self._plan["reuse"]) / KEPT, START_SECONDS)
        self._earlier = _earlier(self._plan.get("reuse"), self._work, self._identity)
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
        keys = ("shown", "before", "after", "changed")
        there = [entry for entry in self._plan["overlay"] if entry["after"]]  # what is gone cannot run
        overlay = [{key: entry[key] for key in keys} for entry in there]
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
            most = self._at_once(reference)
            if self._plan.get("beside") and not self._counting:
                self._beside(work, number, told, **known)
            else:
                trees = self._trees(work, number, told, **known)
                if not self._alone:
                    self._compiled(trees, work, number, told, most, **known)
            self._compared_and_probed(work, number, told, most, **known)
            if self._plan.get("replay") and (self._plan["overlay"] or self._plan.get("settings")):
                told["replayed"] = self._replayed(work, number, told["name"], most, **known)
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
        job = self._variant(work, number, told["name"], tree, kind, mode, **known)
        (result,) = self._worked([job])
        self._note(told, job, result)
        return result

    def _compiled(self, trees: Sequence[str], work: Path, number: int, told: Json, most: int, **known: object) -> None:
        """The compiled variants, and the original in the first mode once more: what is another thing then was chance.

        ``most``: how many at a time, when nobody times them.
        """
        modes, case = self._plan["modes"], told["name"]
        pairs = [(mode, tree) for mode in modes for tree in trees]
        jobs = [self._variant(work, number, case, tree, "compiled", mode, **known) for mode, tree in pairs]
        again = [self._again(work, number, case, **known)] if modes and self._plan.get("repeat") else []
        seen = [self._variant(work / "observed", number, case, "original", "eager", None, observed=True, **known)]
        seen = seen if self._untimed and self._plan.get("observed") else []
        results = self._worked([*jobs, *again, *seen] if self._untimed else jobs, most if self._untimed else 1)
        if seen:
            told["observations"] = results.pop().get("observations")
        for job, result in zip(jobs, results, strict=False):
            self._note(told, job, result)
        if again and results[0]["status"] == "timeout":
            told["repeated"] = {"status": "skipped", "message": "the first run did not come to its end"}
        elif again:
            (result,) = results[len(jobs) :] or self._worked(again)
            told["repeated"] = {key: value for key, value in result.items() if key not in ("environment", "case")}

    def _beside(self, work: Path, number: int, told: Json, **known: object) -> None:
        """What is patched in eager mode and compiled at the same time, then the original of the run beside this one."""
        case, modes = told["name"], self._plan["modes"]
        jobs = [self._variant(work, number, case, "patched", "compiled", mode, **known) for mode in modes]
        if self._plan["overlay"]:
            jobs.insert(0, self._variant(work, number, case, "patched", "eager", None, **known))
        else:  # eager code does not ask for settings: it is the original's
            told["variants"].append({**told["variants"][0], "tree": "patched"})
        originals = [self._variant(work, number, case, "original", "compiled", mode, **known) for mode in modes]
        patched = bool(self._plan["overlay"] or self._plan.get("settings"))
        for some in (jobs if patched else [], originals):
            for job, result in zip(some, self._worked(some, max(1, len(some))), strict=True):
                self._note(told, job, result)

    def _variant(
        self, work: Path, number: int, case: str, tree: str, kind: str, mode: str | None, **known: object
    ) -> _Job:
        folder = work / "-".join(part for part in (tree, kind, mode) if part)
        asked = {"case": number, "tree": tree, "kind": kind, "mode": mode, "folder": str(folder), **known}
        variant = f"{tree} {kind}" + (f" ({mode})" if mode else "")
        if self._counting and mode:
            variant = f"{tree} counted ({self._plan['backend']})"
        traced = (tree, kind) == ("original", "compiled") and not (known.get("nudged") or known.get("paired"))
        trace = self._trace(number, mode) if traced else {}
        return _Job("worker.py", asked | trace, folder, case, variant)

    def _again(self, work: Path, number: int, case: str, **known: object) -> _Job:
        mode = self._plan["modes"][0]
        how = f"counted ({self._plan['backend']})" if self._counting else f"compiled ({mode})"
        folder = work / f"original-compiled-{mode}-again"
        asked = {"case": number, "tree": "original", "kind": "compiled", "mode": mode, "folder": str(folder), **known}
        return _Job("worker.py", asked, folder, case, f"original {how} again")

    def _note(self, told: Json, job: _Job, result: Json) -> None:
        """Add a variant to what is told about the case."""
        self._environment = {**result.pop("environment", {}), **self._environment}  # that of the first, which is timed
        told.update(result.pop("case", {}))
        self._device = told.get("device", self._device)
        named = {key: job.asked[key] for key in ("tree", "kind", "mode")}
        told["variants"].append({**named, "folder": job.folder.name, **result})

    def _compared_and_probed(self, work: Path, number: int, told: Json, most: int, **known: Any) -> None:
        """How far the variants are from one another, and the experiments on the original; ``most``: untimed at once."""
        case, names = told["name"], self._plan.get("probes", ())
        compare = self._comparing(work, number, told, "compare")
        comparing = [] if self._alone or self._counting else [compare]
        probes = {name: self._probe(name, work, number, case, **known) for name in names}
        together = [*comparing, *(probes[name] for name in names if name in UNTIMED)]
        alone = [probes[name] for name in names if name not in UNTIMED]
        results = [*self._processes(together, most), *self._processes(alone)]
        found = {job.folder: result for job, result in zip((*together, *alone), results, strict=True)}
        if comparing:
            compared = found[compare.folder]
            has_float64 = any(variant["kind"] == "float64" for variant in told["variants"])
            rows = compared.get("comparisons", [])
            if any(map(_is_doubtful, rows)) and not has_float64 and not known.get("draws_random"):
                exact = self._measure(work, number, told, "original", "float64", **known)
                again = [self._comparing(work, number, told, "compare-exact")] if exact["status"] == "ok" else []
                compared = next((one for one in self._processes(again) if one["status"] == "ok"), compared)
            rows = self._nudged(work, number, told, compared.get("comparisons", []), **known)
            told["comparisons"] = self._paired(work, number, told, rows, **known)
            told["compare_error"] = None if compared["status"] == "ok" else compared["message"]
            over = bool(self._plan.get("until")) and time.monotonic() > self._plan["until"] - 1
            unknown = [row for row in told["comparisons"] if _is_doubtful(row) or _chooses(row)]
            told["cut"] = over and any(not row.get("rounding") for row in unknown)
        if names:
            told["probes"] = [
                {**{k: v for k, v in found[job.folder].items() if k not in ("environment", "case")}, "name": name}
                for name, job in probes.items()
            ]

    def _nudged(self, work: Path, number: int, told: Json, rows: list[Json], **known: Any) -> list[Json]:
        """The rows, where what differs is not more than what eager code makes of weights that are moved by a rounding.

        Of compiled code that equals eager code with such weights in both, those figures: what differed was a branch, as
        of a ReLU, that rounding had taken. What is wrong stays wrong.
        """
        moved: Json = {"name": told["name"], "variants": []}

        def measured(some: Sequence[tuple[str, str, str | None]]) -> bool:
            apart = work / "nudged"
            return all(self._measure(apart, number, moved, *o, nudged=True, **known)["status"] == "ok" for o in some)

        if not any(map(_is_doubtful, rows)) or not measured([("original", "eager", None)]):
            return rows
        reference = {**moved["variants"][0], "kind": "nudged", "folder": f"nudged/{moved['variants'][0]['folder']}"}
        both = {**told, "variants": [*told["variants"], reference]}
        for compared in self._processes([self._comparing(work, number, both, "compare-nudged")]):
            explained = {_named(row): row for row in compared.get("comparisons", []) if not _is_doubtful(row)}
            rows = [explained.get(_named(row), row) if _is_doubtful(row) else row for row in rows]
        close = [
            row for row in rows if _is_doubtful(row) and not _is_doubtful(row, NEAR) and not row.get("differences")
        ]
        doubtful = [_named(row) for row in close]
        if not doubtful or not measured(doubtful):
            return rows
        agreeing = {
            _named(row): row
            for compared in self._processes([self._comparing(work / "nudged", number, moved, "compare")])
            for row in compared.get("comparisons", [])
            if _named(row) in doubtful and not _is_doubtful(row) and not row.get("differences")
        }
        return [_without_branch(row, agreeing[_named(row)]) if _named(row) in agreeing else row for row in rows]

    def _paired(self, work: Path, number: int, told: Json, rows: list[Json], **known: Any) -> list[Json]:
        """The rows, where other choices (tokens, say) are those of rounding: with the figures of each compiled call.

        That is when eager code with weights that are moved by a rounding chooses otherwise too, and each compiled call
        gives what the original makes of the same arguments.
        """
        chosen = [row for row in rows if _chooses(row)]
        moved: Json = {"name": told["name"], "variants": []}
        if not chosen or told.get("train"):
            return rows
        nudged = self._measure(work / "moved", number, moved, "original", "eager", nudged=True, **known)
        reference = {**nudged, "tree": "original", "kind": "compiled", "mode": None, "folder": "moved/original-eager"}
        both: Json = {"name": told["name"], "variants": [told["variants"][0], reference]}
        compared = self._processes([self._comparing(work, number, both, "compare-moved", weights=False)])
        if not any(_chooses(row) for one in compared for row in one.get("comparisons", [])):
            return rows
        return [self._by_call(work, number, told, row, **known) if row in chosen else row for row in rows]

    def _by_call(self, work: Path, number: int, told: Json, row: Json, **known: Any) -> Json:
        """The row with the figures of a pass in which the original makes each compiled call too."""
        made: Json = {"name": told["name"], "variants": []}
        self._measure(work / "pairs", number, made, *_named(row), paired=True, **known)
        (variant,) = made["variants"]
        folder = f"pairs/{variant['folder']}"
        original: Json = {"tree": "original", "mode": None, "status": "ok"}
        eager, moved = ({**original, "kind": kind, "folder": f"{folder}/{kind}"} for kind in ("eager", "moved"))
        made["variants"] = [eager, moved, {**variant, "folder": f"{folder}/compiled"}]
        job = self._comparing(work, number, made, f"compare-pairs-{variant['folder']}", weights=False)
        for compared in self._processes([job]) if variant["status"] == "ok" else ():
            for _, usual, own in [compared["comparisons"]] if compared.get("comparisons") else ():
                rounding = _rounding_of(own, usual)
                if not own["differences"] and rounding is not None:
                    parts = {key: own[key] for key in (*_FIGURES, "epsilon", "differences")} | {"rounding": rounding}
                    return {**row, **parts, "chosen": row["differences"], "calls": variant["paired"]}
        return row

    def _replayed(self, work: Path, number: int, case: str, most: int, **known: Any) -> Json:
        """What calls with changed inputs give, of the original in eager mode and of the patched source compiled.

        Without what compiling the original makes of them too.
        """
        folder = work / "replayed"
        variants = [
            ("original", "eager", None),
            ("patched", "compiled", "default"),
            ("original", "compiled", "default"),
        ]
        asked = {"replayed": self._plan["replay"], **known}
        original, patched = [self._variant(folder, number, case, *one, **asked) for one in variants[:2]]

        def compared(one: _Job, reference: Json) -> Json:
            names = {"folders": [str(original.folder), str(one.folder)], "changes": reference["changes"]}
            (told,) = self._processes(
                [_Job(COMPARING, names, folder / f"compare-{one.folder.name}", case, "comparing")]
            )
            return told

        results = self._processes([original, patched], most)
        if failed := next((one for one in results if one["status"] != "ok"), None):
            return {key: failed[key] for key in ("status", "message")}
        told = compared(patched, results[0])
        if told.get("failing") or told.get("different"):
            apart = {each.partition(":")[0] for each in (*told["failing"], *told["different"])}
            asked["only"] = [number for number, name, _ in results[0]["changes"] if name in apart]
            asked["replayed"] *= _LONGER  # it may compile far more
            alone = self._variant(folder, number, case, *variants[2], **asked)
            (result,) = self._processes([alone])
            same = compared(alone, results[0]) if result["status"] == "ok" else {}
            failing = {each.partition(":")[0] for each in same.get("failing", ())}
            different = [each for each in told["different"] if not _is_like(each, same.get("different", ()))]
            told["inputs"] -= len(told["different"]) - len(different)
            told["failing"] = [each for each in told["failing"] if each.partition(":")[0] not in failing]
            told["different"] = different
        return told

    def _comparing(self, work: Path, number: int, told: Json, folder: str, weights: bool = True) -> _Job:
        excused = not told["variants"][0].get("draws_random")  # else float64 draws other numbers
        asked = {"case": number, "variants": told["variants"], "folder": str(work), "excused": excused}
        asked["weights"] = weights
        return _Job(COMPARING, asked, work / folder, told["name"], "comparing")

    def _probe(self, name: str, work: Path, number: int, case: str, **known: object) -> _Job:
        """An experiment on the original."""
        folder = work / f"probe-{name}"
        mode = next(iter(self._plan["modes"]), "default")
        asked = {"case": number, "tree": "original", "probe": name, "mode": mode, "folder": str(folder), **known}
        return _Job(PROGRAMS.get(name, "probes.py"), asked, folder, case, f"probe {name}")

    def _at_once(self, reference: Json) -> int:
        """How many processes may run at a time that nobody times: one on each core, with memory for each of them."""
        memory = reference.get("memory") or {}
        used: int | None = memory.get("bytes")
        if self._plan["verbose"] or not self._forks.several or not used:
            return 1
        free = self._environment.get("memory") or 0 if memory.get("kind") == "cuda" else _free_memory()
        return max(1, min(cores(), free // (ROOM * used)))

    @property
    def _untimed(self) -> bool:
        """Whether nobody asks how long what is compiled takes."""
        return self._counting or bool(self._plan.get("untimed"))

    @property
    def _alone(self) -> bool:
        """Whether nothing is compiled but by the experiments that are asked for."""
        return bool(self._plan.get("alone"))

    def _worked(self, jobs: Sequence[_Job], at_once: int = 1) -> list[Json]:
        """What workers tell, now or in an earlier run; written down beside what they save when the folder stays."""
        known = {job.folder: taken for job in jobs if (taken := self._taken(job)) is not None}
        new = [job for job in jobs if job.folder not in known]
        for job, result in zip(new, self._processes(new, at_once), strict=True):
            if self._plan.get("keep"):
                write_json(job.folder / TOLD, result)
            known[job.folder] = {**result, **{key: job.asked[key] for key in ("trace",) if key in job.asked}}
        return [known[job.folder] for job in jobs]

    def _taken(self, job: _Job) -> Json | None:
        """What an earlier run has told of a variant of the original; its files then lie in the job's folder."""
        if job.asked["tree"] != "original" or self._earlier is None or job.asked["kind"] not in self._earlier.kinds:
            return None
        source = (self._earlier.work / job.folder.relative_to(self._work)).resolve()
        own = any(job.asked.get(key) for key in ("nudged", "paired", "observed"))  # no other run makes these
        if self._plan.get("beside") and job.asked["kind"] != "float64" and not own:
            self._await(source / TOLD, self._plan["seconds"])
        try:
            result: Json = json.loads((source / TOLD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if result["status"] != "ok" and not self._plan.get("beside"):
            return None  # beside others it may have failed for want of room
        job.folder.parent.mkdir(parents=True, exist_ok=True)
        job.folder.symlink_to(source, target_is_directory=True)
        self._begun += 1
        self._tell("end", job, result["status"])
        return {**result, "reused": True}

    def _await(self, file: Path, seconds: float) -> None:
        """Wait until another run has written this file, or the time is over."""
        over = time.monotonic() + seconds
        while not file.exists() and time.monotonic() < over and not self._stop.wait(LISTEN_SECONDS):
            pass

    def _trace(self, number: int, mode: str | None) -> Json:
        """The folder for torch's structured trace of a variant, when one is wanted; empty of earlier traces."""
        if not self._plan.get("trace"):
            return {}
        case = re.sub(r"[^\w.-]", "_", self._plan["cases"][number]["name"])
        folder = Path(self._plan["trace"], f"{number + 1}-{case}", str(mode))
        for old in folder.glob("dedicated_log_torch_trace_*"):
            old.unlink()
        return {"trace": str(folder)}

    def _processes(self, jobs: Sequence[_Job], most: int = 1) -> list[Json]:
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

    def _start_of(self, job: _Job, at_once: int) -> _Running:
        if self._stop.is_set():
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

    def _process(self, job: _Job, spec: Path, log: IO[bytes], threads: int) -> Forked | subprocess.Popen[bytes]:
        file, variables = HERE / job.program, self._variables(job.asked, job.folder)
        process: Forked | subprocess.Popen[bytes] | None = None
        if not (self._plan["verbose"] or self._plan.get("trace")):  # torch reads what to log when it is imported
            generates = self._plan.get("backend") == "inductor" and (
                "probe" in job.asked or job.asked.get("kind") == "compiled"
            )
            untimed = (self._untimed and job.asked.get("kind") == "compiled") or job.asked.get("probe") in UNTIMED
            manner = Manner(generates, untimed, threads, self._plan.get("workers", 0), self._device != "cpu")
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

    def _is_over(self, one: _Running, seconds: float) -> bool:
        """Whether it ends within that time, or is to be ended."""
        if has_ended(one.process, seconds):
            return True
        if self._stop.is_set():
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

    def _tell(self, what: Literal["start", "running", "end"], job: _Job, status: str) -> None:
        self._over += what == "end"
        if self._progress is not None:
            modes, quick = len(self._plan["modes"]), self._plan["quick"]
            asked = bool(modes and self._plan.get("repeat")) + len(self._plan.get("probes", ()))
            if self._alone:
                modes = 0
            patch, settings = bool(self._plan["overlay"]), bool(self._plan.get("settings"))
            compiled = modes * (1 + (patch or settings))
            each = 1 + compiled if self._counting else 2 - self._alone + patch * (1 + (not quick)) + compiled
            total = max(len(self._plan["cases"]) * (each + asked), self._begun)
            seconds = round(time.monotonic() - self._start, 1)
            number = self._over if what == "end" else self._begun
            self._progress(Event(what, job.case, job.variant, status, number, total, seconds))


def usual_variables() -> dict[str, str]:
    """The environment of every worker, without what each has for itself."""
    given = {key: value for key, value in os.environ.items() if key not in _OURS}
    return {**given, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1"}


def _identity(plan: Json, python: str) -> Json:
    """What two runs must have in common for one to use the original's figures of the other."""
    same = {key: plan.get(key) for key in ("schema", "base", "cases", *_COMPILING, "eager_untimed", "quick")}
    files = [_sha256(case["file"]) for case in plan["cases"]]
    return {**same, "files": files, "programs": [_sha256(file) for file in sorted(HERE.glob("*.py"))], "python": python}


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
        timed = [key for key in ("untimed", "eager_untimed") if not known.get(key)]  # that does no harm
        identity = {**identity, **dict.fromkeys(timed)}
        if known == identity:
            return _Earlier(Path(folder), ("eager", "float64", "compiled"))
        if _uncompiled(known) == _uncompiled(identity):
            return _Earlier(Path(folder), ("eager", "float64"))
    return None


def _uncompiled(identity: Json) -> Json:
    return {key: value for key, value in identity.items() if key not in _COMPILING}


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


def _named(row: Json) -> tuple[str, str, str | None]:
    """The variant that a row is of."""
    return row.get("tree", ""), row.get("kind", ""), row.get("mode")


def _is_doubtful(row: Json, usual: tuple[float, float] | None = None) -> bool:
    """Whether compiled code differs by more than its precision usually does, which rounding may explain.

    ``usual``: of outputs; of gradients and state. None: the limits that ``compare.py`` has for this precision.
    """
    epsilon = row.get("epsilon") or 0.0
    outputs, trained = usual or (max(1e-3, 16 * epsilon), max(1e-2, min(0.5, 256 * epsilon)))
    parts = ((row, outputs), (row.get("gradients"), trained), (row.get("state"), trained))
    return row.get("kind") == "compiled" and any(((p or {}).get("relative") or 0.0) > most for p, most in parts)


def _is_like(told: str, others: Iterable[str]) -> bool:
    """Whether one of the others says the same of the same input, by about as much: so many elements, so far apart."""
    pairs = [one.partition(": ")[::2] for one in (told, *others)]
    name, what = pairs[0]
    alike = [other for its, other in pairs[1:] if its == name and _NUMBER.sub("N", other) == _NUMBER.sub("N", what)]
    return any(_largest(what) <= _ALIKE * _largest(other) for other in alike)


def _largest(text: str) -> float:
    return max(map(float, _NUMBER.findall(text)), default=0.0)


def _rounding_of(row: Json, moved: Json) -> float | None:
    """What rounding makes of calls (relative), where that is more than usual, else 0; None where it is no rounding.

    More than usual it is where eager code with weights moved by one rounding makes about as much of the same tensor.
    """
    usual, relative = max(1e-3, 16 * (row.get("epsilon") or 0.0)), row.get("relative") or 0.0
    if relative <= usual:
        return 0.0
    known = moved.get("by_name") or {}
    far = {name: apart for name, apart in row["by_name"].items() if apart > usual}
    as_far = all(apart <= AS_ROUNDING * known.get(name, 0.0) for name, apart in far.items())
    as_much = (row.get("mae") or 0.0) <= AS_ROUNDING * (moved.get("mae") or 0.0)
    return relative if as_far and as_much and relative <= MOST_ROUNDED else None


def _chooses(row: Json) -> bool:
    """Whether all that differs by name is integers that calls return, in the first pass already."""
    found = [_OF_INTEGERS.fullmatch(text) for text in row.get("differences") or []]
    first = {match[1] for match in found if match and not match[2]}
    return row.get("kind") == "compiled" and bool(found) and all(match and match[1] in first for match in found)


def _without_branch(row: Json, moved: Json) -> Json:
    """The row with the figures of moved weights; what differed most stays as it was seen."""

    def seen(was: Json, now: Json) -> Json:
        return {**now, "max": max((one["max"] for one in (was, now) if one.get("max") is not None), default=None)}

    parts = {key: seen(row[key], moved[key]) for key in ("gradients", "state") if row.get(key) and moved.get(key)}
    return {**row, **seen(row, moved), **parts, "as_exact": row.get("as_exact", 0) + 1}


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_memory() -> int:
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


def served(overlay: list[Json], folder: Path) -> list[Json]:
    """The overlay, with the files that lie in the plan's folder by their whole paths."""
    keys = ("patched", "original")
    return [{k: str(folder / v) if k in keys else v for k, v in entry.items()} for entry in overlay]


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
