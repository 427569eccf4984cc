"""Measure one way to compile a case, in a process of its own: ``python way.py SPEC.json``.

SPEC.json is a plan with a ``job`` that holds the ``case`` and the ``way`` (``ways.py``), or no way: then it tells
what kind of case it is. The answer is ``result.json`` in the job's ``folder``. What is measured is what is written: the
lines that ``ways.lines`` makes are executed. Standard library, torch, and what lies beside this file.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import statistics
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
import torch._dynamo
import torch._inductor
import torch._inductor.config

if TYPE_CHECKING:
    from patcher.harness import probes, ways, worker
else:
    import probes
    import ways
    import worker

FEWEST_CALLS, CALL_SECONDS = 3, 1.0
REASONS = 5  # of skipped CUDA graphs, that are told

ASSEMBLER = "TRITON_PTXAS_PATH"
_LIMIT = "torch._dynamo.config.recompile_limit"  # cache_size_limit before 2.7

Json = dict[str, Any]


def look(plan: Json, case: worker.Case, listener: worker.Listener) -> Json:
    """What is to be known before a way is chosen (``ways.Facts``), and the times when nothing is compiled."""
    run = Run(plan, case, listener)
    run._pass(None)
    eager = {"status": "ok", **run.warm(plan["job"]["warm_seconds"]), "call_ms": run.call_by_call()}
    numbers = range(len(case.calls()))
    steps = [probes.Step(n + 1, None, functools.partial(probes._nth, case, n)) for n in numbers]
    marks = probes.varying([[call for step in steps for call in probes._shapes_of(case, run.model, step)]])
    return {
        "device": run.device.type,
        "backend": plan["backend"],
        "module": isinstance(run.model, torch.nn.Module) and not _is_torchs(run.model),
        "blocks": [
            {"path": path, "class": type(found[0]).__name__, "count": len(found)}
            for path, found in probes.repeated_blocks(run.model)
            if not _is_torchs(found[0])
        ],
        "marks": [{"path": path, "dims": dims} for path, dims in marks.items()],
        "modes": list(torch._inductor.list_mode_options()),
        "missing": [name for name in plan["job"]["settings"] if not _known(name)],
        "own_compile": probes._compiles_itself(case),
        "limit": _LIMIT if _known(_LIMIT) else _LIMIT.replace("recompile_limit", "cache_size_limit"),
        "model": f"{type(run.model).__module__}.{type(run.model).__qualname__}",
        "eager": eager,
    }


def _is_torchs(module: torch.nn.Module) -> bool:
    """Whether its ``forward`` is one of PyTorch's own, which ``module.compile()`` passes over: nothing is compiled."""
    return "forward" not in vars(module) and type(module).forward.__module__.startswith("torch.nn.")


def _known(setting: str) -> bool:
    """Whether this torch has a setting, by its dotted name."""
    found: Any = torch
    for part in setting.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            return False
    return True


class Run(worker._Run):
    """A fresh model, compiled one way or not at all, and the harness's passes over the case's calls."""

    def __init__(self, plan: Json, case: worker.Case, listener: worker.Listener, way: ways.Way | None = None) -> None:
        job = {**plan["job"], "kind": "eager", "mode": None}
        super().__init__({**plan, "job": job}, case, listener)
        if way is None:
            return
        self.kind, facts = "compiled", ways.Facts.of(plan["job"]["facts"])
        self.runner = compiled(case, self.model, way, facts)
        if way.marked:
            marks = probes.Marking(torch._dynamo.maybe_mark_dynamic, {path: [*dims] for path, dims in facts.marks})
            self.runner = probes.Attended(self.runner, marks.attach)

    def _watched(self) -> dict[str, Any]:
        """Without the parameters where nothing is trained: to hash gigabytes takes longer than to run them."""
        every = super()._watched()
        fixed = {} if self.case.train else worker._parameters(self.model)
        return {_plain(name): tensor for name, tensor in every.items() if name not in fixed}

    def _trained(self) -> dict[str, Any]:
        return {_plain(name): parameter for name, parameter in super()._trained().items()}

    def passes(self) -> Json:
        """Cold, and on until nothing is compiled any more; what the calls return is kept, as by ``counted``."""
        enough = worker.QUICK_PASSES if self.plan["quick"] else worker.COUNTED_PASSES
        needed = 0
        cold = 0.0
        for number in range(1, worker.MOST_PASSES + 1):
            before = self.listener.counts()
            rows = self._pass(number if number in (1, enough) else None)
            after = self.listener.counts()
            if number == 1:
                cold = round(sum(row["seconds"] for row in rows), 4)
            compiling = any(after[k] != before[k] for k in ("graphs", "breaks", "recompiles", "cudagraph_skips"))
            needed = number if compiling else needed
            if number >= enough and not compiling:
                break
        again = Counter(row[:2] for row in self.listener.recompiles)
        return {
            "cold_seconds": cold,
            "passes": needed,
            "settled": needed < worker.MOST_PASSES,
            "counts": {key: after[key] for key in after if key not in ("launches", "operators")},
            "launches": sum(row["launches"] for row in rows),
            "operators": sum(row["operators"] for row in rows),
            "skips": list(dict.fromkeys(self.listener.skips))[:REASONS],
            "most_recompiles": max(again.values(), default=0),
        }

    def call_by_call(self) -> Json:
        """Milliseconds of one call that is waited for: the mean over the case's calls, in each of several passes."""
        times: list[float] = []
        start = time.perf_counter()
        while len(times) < worker.MOST_WARM and (
            len(times) < FEWEST_CALLS or time.perf_counter() - start < CALL_SECONDS
        ):
            calls = self.case.calls()
            worker.seed()
            taken = 0.0
            for call in calls:
                self._wait()
                self._begin_step()
                began = time.perf_counter()
                worker._step(self.case, self.model, self.runner, call, self.optimizer)
                self._wait()
                taken += time.perf_counter() - began
            times.append(1e3 * taken / len(calls))
        low, _, high = statistics.quantiles(times, n=4, method="inclusive")
        figures = {"median_ms": statistics.median(times), "low_ms": low, "high_ms": high, "min_ms": min(times)}
        return {**{key: round(value, 4) for key, value in figures.items()}, "passes": len(times)}


def _plain(name: str) -> str:
    """A name as it was before ``torch.compile`` has wrapped a module."""
    return ".".join(part for part in name.split(".") if part != "_orig_mod")


def compiled(case: worker.Case, model: Any, way: ways.Way, facts: ways.Facts) -> Any:
    """What is called from now on. A ``compile()`` of the case's own takes the arguments, unless blocks are wanted."""
    written = ways.lines(way, facts)
    if facts.own_compile and way.scope == "whole":
        exec("\n".join(written[:-1]), {"torch": torch})
        return case.compile(model, dict(way.arguments))
    names = {"torch": torch, "model": model}
    exec("\n".join(written), names)
    return names["model"]


def measured(plan: Json, case: worker.Case, listener: worker.Listener) -> Json:
    """All figures of the way that the job names; ``again``: of a process that finds the cache of an earlier one."""
    job: Json = plan["job"]
    way = ways.Way.of(job["way"])
    if way.preset == "debug":
        return traced(plan, case, listener, way)
    assembler = one_assembler(way) if job["facts"]["device"] == "cuda" else ""
    run = Run(plan, case, listener, way)
    worker.attend(listener, plan["verbose"])
    told = {"assembler": assembler, **run.passes(), **run.warm(job["warm_seconds"])}
    told["call_ms"] = run.call_by_call()
    if job.get("reuse"):
        told["reuse"] = reused(plan, case, listener, way)
    return told


def one_assembler(way: ways.Way) -> str:
    """Have this process use the assembler that inductor's workers use: its path where that is another one, else "".

    A torch that brings a ``ptxas`` tells it to its workers only. Triton files what is compiled under the assembler's
    version: a candidate for a matrix product that a worker has compiled is not found by the process that is to time
    it, which then compiles all of them once more, one after another.
    """
    if not str(dict(way.arguments).get("mode")).startswith("max-autotune") or ASSEMBLER in os.environ:
        return ""
    with contextlib.suppress(ImportError, AttributeError):  # of other releases
        importlib.import_module("torch._inductor.runtime.compile_tasks")._set_triton_ptxas_path()
    return os.environ.get(ASSEMBLER, "")


def reused(plan: Json, case: worker.Case, listener: worker.Listener, way: ways.Way) -> Json:
    """What a second model of the same code costs in the same process: nothing, when its compilation is shared."""
    try:
        second = Run(plan, case, listener, way)
        before = listener.counts()
        rows = second._pass(None)
    except Exception as error:
        return {"status": worker._status_of(error), "message": worker._message_of(error)}
    after = listener.counts()
    counts = {key: after[key] - before[key] for key in ("graphs", "recompiles", "limit_hits")}
    return {"status": "ok", "message": "", "seconds": round(sum(row["seconds"] for row in rows), 4), **counts}


def traced(plan: Json, case: worker.Case, listener: worker.Listener, way: ways.Way) -> Json:
    """Whether all calls are captured whole, by backends that generate no code: "" or what was in the way, seconds."""
    told: Json = {}
    for backend in ("eager", "aot_eager"):
        torch._dynamo.reset()
        facts = ways.Facts.of(plan["job"]["facts"])
        arguments = (("backend", backend), *(pair for pair in way.arguments if pair[0] != "backend"))
        model = case.build()
        runner = compiled(case, model, ways.Way(way.name, way.preset, way.scope, arguments), facts)
        optimizer = case.optimizer(model) if case.train else None
        launched, start, message = listener.launches, time.perf_counter(), ""
        try:
            for call in case.calls():
                worker._step(case, model, runner, call, optimizer)
        except (Exception, SystemExit) as error:
            if worker._status_of(error) in ("case-error", "out-of-memory"):
                raise
            message = worker.place_names(plan)(worker._message_of(error))
        seconds = round(time.perf_counter() - start, 4)
        told[backend] = {"message": message, "seconds": seconds, "launches": listener.launches - launched}
        del model, runner, optimizer
        gc.collect()
    return {"traced": told}


def answer(plan: Json) -> Json:
    """What there is to tell; a failure becomes a status and one line."""
    try:
        return {"status": "ok", "message": "", **told(plan)}
    except (Exception, SystemExit) as error:
        worker._explain(error)
        return {"status": worker._status_of(error), "message": worker._message_of(error)}


def told(plan: Json) -> Json:
    """Set up as the worker does for a compiled variant."""
    job: Json = plan["job"]
    worker.limit_memory(plan["memory"])
    listener = worker.Listener(worker.place_names(plan), plan["cases"][job["case"]]["file"])
    worker.overlay_of(plan).install(job["tree"] == "patched")
    listener.count_graphs()
    if job.get("draws_random"):
        torch._inductor.config.fallback_random = True
    with worker.listening(listener, plan["verbose"]), worker.in_force(job["under"]):
        case = worker.load_case(plan, job)
        if case.vary and not case.sizes:
            case.sizes = worker.sizes_that_work(case)
        return measured(plan, case, listener) if job.get("way") else look(plan, case, listener)


def main() -> None:
    """The command line."""
    probes.leave_answer(answer)


if __name__ == "__main__":
    main()
