"""Run a plan: which processes are asked for each case, in which order. Standard library only.

One process per variant (original or patched source, eager or compiled, in each mode), then one per case that compares
what they saved, and one for each experiment that the plan asks for. The outcome is ``results.json`` beside the plan;
docs/harness.md describes both.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from patcher.harness.earlier import Workers
from patcher.harness.forks import Forks
from patcher.harness.processes import (
    COMPARING,
    UNTIMED,
    Job,
    Json,
    Processes,
    Progress,
    cores,
    free_memory,
    is_untimed,
    signals_as_exceptions,
    usual_variables,
    write_json,
)

SCHEMA = 1
HERE = Path(__file__).resolve().parent
PROGRAMS = {"fusions": "fusions.py"}  # of probes that have one of their own
AS_ROUNDING = 3  # times what eager code makes of weights that are moved by a rounding
MOST_ROUNDED = 0.75  # relative: a tensor that is gone differs by 1
NEAR = (0.1, 0.1)  # relative, of outputs; of gradients and state: more of a difference is no branch that rounding took
ROOM = 2  # for each of several processes at a time: times the memory that the original took in eager mode

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_INTEGERS = r"(?:u?int\d+|bool) \([^)]*\)"
_OF_INTEGERS = re.compile(
    rf"call (\d+)( \(repeated, pass \d+\))? [^:]*: (?:other values \({_INTEGERS}\)|{_INTEGERS} became {_INTEGERS})"
)
_LONGER = 3
_ALIKE = 10  # times as much: compiling the original may differ from eager code by rounding that grows
_FIGURES = ("bitwise", "mae", "max", "relative", "worst", "finite")  # of a row of differences


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
        self._plan: Json = json.loads(plan_file.read_text(encoding="utf-8"))
        self._plan["overlay"] = _served(self._plan["overlay"], plan_file.parent)
        self._folder, self._work = plan_file.parent, plan_file.parent / "work"
        self._environment: Json = {}
        self._counting = bool(self._plan.get("counting"))
        self._alone = bool(self._plan.get("alone"))  # nothing is compiled but by the experiments that are asked for
        self._forks, self._processes = forks, Processes(self._plan, HERE, python, progress, forks, stop)
        self._processes.expected = self._expected()
        self._workers = Workers(self._plan, self._work, HERE, python, self._processes)

    def everything(self) -> Json:
        """All cases."""
        self._workers.clear()
        started = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
        try:
            cases = [self._case(number) for number in range(len(self._plan["cases"]))]
        finally:
            if not self._plan.get("keep"):
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
            "seconds": self._processes.seconds,
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
        (result,) = self._workers.told([job])
        self._note(told, job, result)
        return result

    def _compiled(self, trees: Sequence[str], work: Path, number: int, told: Json, most: int, **known: object) -> None:
        """The compiled variants, and the original in the first mode once more: what is another thing then was chance.

        ``most``: how many at a time, when nobody times them.
        """
        modes, case = self._plan["modes"], told["name"]
        pairs = [(mode, tree) for mode in modes for tree in trees]
        jobs = [self._variant(work, number, case, tree, "compiled", mode, **known) for mode, tree in pairs]
        repeated = modes[:1] if self._plan.get("repeat") else []
        again = [self._variant(work, number, case, "original", "compiled", m, again=True, **known) for m in repeated]
        seen = [self._variant(work / "observed", number, case, "original", "eager", None, observed=True, **known)]
        untimed = is_untimed(self._plan)
        seen = seen if untimed and self._plan.get("observed") else []
        results = self._workers.told([*jobs, *again, *seen] if untimed else jobs, most if untimed else 1)
        if seen:
            told["observations"] = results.pop().get("observations")
        for job, result in zip(jobs, results, strict=False):
            self._note(told, job, result)
        if again and results[0]["status"] == "timeout":
            told["repeated"] = {"status": "skipped", "message": "the first run did not come to its end"}
        elif again:
            (result,) = results[len(jobs) :] or self._workers.told(again)
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
            for job, result in zip(some, self._workers.told(some, max(1, len(some))), strict=True):
                self._note(told, job, result)

    def _variant(
        self, work: Path, number: int, case: str, tree: str, kind: str, mode: str | None, **known: object
    ) -> Job:
        again = "again" if known.get("again") else ""
        folder = work / "-".join(part for part in (tree, kind, mode, again) if part)
        asked = {"case": number, "tree": tree, "kind": kind, "mode": mode, "folder": str(folder), **known}
        variant = f"{tree} {kind}" + (f" ({mode})" if mode else "")
        if self._counting and mode:
            variant = f"{tree} counted ({self._plan['backend']})"
        traced = (tree, kind) == ("original", "compiled") and not any(map(known.get, ("nudged", "paired", "again")))
        trace = self._trace(number, mode) if traced else {}
        return Job("worker.py", asked | trace, folder, case, f"{variant} {again}".rstrip())

    def _note(self, told: Json, job: Job, result: Json) -> None:
        """Add a variant to what is told about the case."""
        self._environment = {**result.pop("environment", {}), **self._environment}  # that of the first, which is timed
        told.update(result.pop("case", {}))
        self._processes.device = told.get("device", self._processes.device)
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
        results = [*self._processes.told(together, most), *self._processes.told(alone)]
        found = {job.folder: result for job, result in zip((*together, *alone), results, strict=True)}
        if comparing:
            self._judged(work, number, told, found[compare.folder], **known)
        if names:
            told["probes"] = [
                {**{k: v for k, v in found[job.folder].items() if k not in ("environment", "case")}, "name": name}
                for name, job in probes.items()
            ]

    def _judged(self, work: Path, number: int, told: Json, compared: Json, **known: Any) -> None:
        """Tell how far the variants are from one another, with what rounding explains of it."""
        has_float64 = any(variant["kind"] == "float64" for variant in told["variants"])
        rows = compared.get("comparisons", [])
        if any(map(_is_doubtful, rows)) and not has_float64 and not known.get("draws_random"):
            exact = self._measure(work, number, told, "original", "float64", **known)
            again = [self._comparing(work, number, told, "compare-exact")] if exact["status"] == "ok" else []
            compared = next((one for one in self._processes.told(again) if one["status"] == "ok"), compared)
        rows = self._nudged(work, number, told, compared.get("comparisons", []), **known)
        told["comparisons"] = self._paired(work, number, told, rows, **known)
        told["compare_error"] = None if compared["status"] == "ok" else compared["message"]
        over = bool(self._plan.get("until")) and time.monotonic() > self._plan["until"] - 1
        unknown = [row for row in told["comparisons"] if _is_doubtful(row) or _chooses(row)]
        told["cut"] = over and any(not row.get("rounding") for row in unknown)

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
        for compared in self._processes.told([self._comparing(work, number, both, "compare-nudged")]):
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
            for compared in self._processes.told([self._comparing(work / "nudged", number, moved, "compare")])
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
        compared = self._processes.told([self._comparing(work, number, both, "compare-moved", weights=False)])
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
        for compared in self._processes.told([job]) if variant["status"] == "ok" else ():
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

        def compared(one: Job, reference: Json) -> Json:
            names = {"folders": [str(original.folder), str(one.folder)], "changes": reference["changes"]}
            (told,) = self._processes.told(
                [Job(COMPARING, names, folder / f"compare-{one.folder.name}", case, "comparing")]
            )
            return told

        results = self._processes.told([original, patched], most)
        if failed := next((one for one in results if one["status"] != "ok"), None):
            return {key: failed[key] for key in ("status", "message")}
        told = compared(patched, results[0])
        if told.get("failing") or told.get("different"):
            apart = {each.partition(":")[0] for each in (*told["failing"], *told["different"])}
            asked["only"] = [number for number, name, _ in results[0]["changes"] if name in apart]
            asked["replayed"] *= _LONGER  # it may compile far more
            alone = self._variant(folder, number, case, *variants[2], **asked)
            (result,) = self._processes.told([alone])
            same = compared(alone, results[0]) if result["status"] == "ok" else {}
            failing = {each.partition(":")[0] for each in same.get("failing", ())}
            different = [each for each in told["different"] if not _is_like(each, same.get("different", ()))]
            told["inputs"] -= len(told["different"]) - len(different)
            told["failing"] = [each for each in told["failing"] if each.partition(":")[0] not in failing]
            told["different"] = different
        return told

    def _comparing(self, work: Path, number: int, told: Json, folder: str, weights: bool = True) -> Job:
        excused = not told["variants"][0].get("draws_random")  # else float64 draws other numbers
        asked = {"case": number, "variants": told["variants"], "folder": str(work), "excused": excused}
        asked["weights"] = weights
        return Job(COMPARING, asked, work / folder, told["name"], "comparing")

    def _probe(self, name: str, work: Path, number: int, case: str, **known: object) -> Job:
        """An experiment on the original, or on what is patched."""
        folder = work / f"probe-{name}"
        mode = next(iter(self._plan["modes"]), "default")
        patched = self._alone and (self._plan["overlay"] or self._plan.get("settings"))
        tree = "patched" if patched else "original"
        asked = {"case": number, "tree": tree, "probe": name, "mode": mode, "folder": str(folder), **known}
        return Job(PROGRAMS.get(name, "probes.py"), asked, folder, case, f"probe {name}")

    def _at_once(self, reference: Json) -> int:
        """How many processes may run at a time that nobody times: one on each core, with memory for each of them."""
        memory = reference.get("memory") or {}
        used: int | None = memory.get("bytes")
        if self._plan["verbose"] or not self._forks.several or not used:
            return 1
        free = self._environment.get("memory") or 0 if memory.get("kind") == "cuda" else free_memory()
        return max(1, min(cores(), free // (ROOM * used)))

    def _trace(self, number: int, mode: str | None) -> Json:
        """The folder for torch's structured trace of a variant, when one is wanted; empty of earlier traces."""
        if not self._plan.get("trace"):
            return {}
        case = re.sub(r"[^\w.-]", "_", self._plan["cases"][number]["name"])
        folder = Path(self._plan["trace"], f"{number + 1}-{case}", str(mode))
        for old in folder.glob("dedicated_log_torch_trace_*"):
            old.unlink()
        return {"trace": str(folder)}

    def _expected(self) -> int:
        """How many processes there will be, as far as that is known."""
        modes, quick = len(self._plan["modes"]), self._plan["quick"]
        asked = bool(modes and self._plan.get("repeat")) + len(self._plan.get("probes", ()))
        if self._alone:
            modes = 0
        patch, settings = bool(self._plan["overlay"]), bool(self._plan.get("settings"))
        compiled = modes * (1 + (patch or settings))
        each = 1 + compiled if self._counting else 2 - self._alone + patch * (1 + (not quick)) + compiled
        return len(self._plan["cases"]) * (each + asked)


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


def _served(overlay: list[Json], folder: Path) -> list[Json]:
    """The overlay, with the files that lie in the plan's folder by their whole paths."""
    keys = ("patched", "original")
    return [{k: str(folder / v) if k in keys else v for k, v in entry.items()} for entry in overlay]
