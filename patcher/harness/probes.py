"""Experiments on one case beyond the harness's variants: ``python probes.py SPEC.json``.

SPEC.json is a plan with a ``job`` that names the ``probe``, one of ``PROBES``, and the ``case``; the answer is
``result.json`` in the job's ``folder``. docs/diagnostics.md says what each probe measures. Standard library, torch and
``worker.py``, which lies beside this file.

An experiment consists of settings. Each gets a fresh model, a reset Dynamo and an empty cache of the compiler; one
that fails is a figure like others, and one for which there is no time left is left out and says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gc
import inspect
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._dynamo.decorators
import torch._inductor
import torch._inductor.config
import torch._inductor.utils
import torch.utils.weak

if not __package__:  # run by its path: what lies beside it is one package
    __package__ = str(__import__("worker").__package__)

from . import running_case
from .failures import CaseError, UnsuitedError, explain, explain_ends, message_of, status_of
from .leaves import leaves, on_host, snapshot
from .listener import Listener, attend, general_guard, listening, place_names
from .overlay import overlay_of, prepare_path
from .passes import MOST_PASSES, Run, write_json
from .running_case import Case, load_case, run_step, sizes_that_work
from .worker import die_with_parent, limit_memory

USABLE = 0.85  # of the seconds that the process may take: at the limit it is ended, and all figures are lost
REASONS = 20  # recompilations of a setting that are told with their guard
ABLATED = ("epilogue_fusion", "aggressive_fusion", "coordinate_descent_tuning", "max_autotune", "split_reductions")
COUNTED = ("graphs", "breaks", "recompiles", "limit_hits", "dropped_frames", "launches", "operators")

Json = dict[str, Any]
repeated_blocks = running_case.repeated_blocks
Mark = Callable[[Any, int], None]


# ---------------------------------------------------------------------------------------------------------------------
# What all experiments share.


class Trial(Run):
    """A fresh model in one setting, with the harness's own passes; outputs stay in memory instead of a folder."""

    def __init__(self, lab: Lab, compiled: Callable[[Any], Any] | None) -> None:
        job = {**lab.plan["job"], "kind": "eager", "mode": lab.mode}
        super().__init__({**lab.plan, "job": job}, lab.case, lab.listener)
        self.outputs: dict[str, Any] = {}
        if compiled is not None:
            self.kind, self.runner = "compiled", compiled(self.model)

    def step(self, case: Case, call: Any, runner: Any = None) -> tuple[Json, float]:
        """What one call has compiled and launched, and its seconds."""
        self._begin_step()
        before, start = self.listener.counts(), time.perf_counter()
        run_step(case, self.model, runner or self.runner, call, self.optimizer)
        self._wait()
        seconds = time.perf_counter() - start
        return _difference(before, self.listener.counts()), round(seconds, 4)

    def first_pass(self) -> tuple[Json, float]:
        """The cold pass over all calls; the outputs are kept."""
        before = self.listener.counts()
        rows = self._pass(1)
        return _difference(before, self.listener.counts()), round(sum(row["seconds"] for row in rows), 4)

    def settle(self) -> Json:
        """Passes until nothing is compiled any more; what the last one launched and did not."""
        for _ in range(MOST_PASSES - 1):
            before = self.listener.counts()
            self._pass(None)
            told = _difference(before, self.listener.counts())
            if not any(told[key] for key in ("graphs", "breaks", "recompiles")):
                break
        return told

    def _save(self, save: int, number: int, call: Any, output: Any) -> str:
        named = leaves(output, f"call {number} output")
        floats = [(name, leaf) for name, leaf in named if torch.is_tensor(leaf) and leaf.is_floating_point()]
        self.outputs.update(on_host(snapshot(floats)))
        self.comparable = True
        return ""

    def _keep(self, name: str, value: Any) -> None:
        pass


def _difference(before: Mapping[str, int], after: Mapping[str, int]) -> Json:
    return {key: after[key] - before[key] for key in COUNTED}


class Lab:
    """A case, the plan that it is measured by, and the time that is left for settings."""

    def __init__(self, plan: Json, case: Case, listener: Listener) -> None:
        self.plan, self.case, self.listener = plan, case, listener
        self.mode: str = plan["job"].get("mode") or "default"
        self.backend: str = plan["backend"]
        self._end, self._longest = time.monotonic() + USABLE * plan["seconds"], 0.0

    def options(self, backend: str | None = None) -> Json:
        """Those for ``torch.compile``; with another backend than the plan's there is no mode."""
        options: Json = {"backend": backend or self.backend}
        if options["backend"] == "inductor" and self.mode != "default":
            options["mode"] = self.mode
        return options

    def tracing_backend(self) -> str:
        """A backend that takes graphs as inductor does, forward and backward, and generates no code."""
        return "aot_eager" if self.backend == "inductor" else self.backend

    def counting_backend(self) -> str:
        """A backend with which Dynamo compiles as often as with inductor; tracing backward can have a say in that."""
        return "eager" if self.backend == "inductor" and not self.case.train else self.tracing_backend()

    def attempt(self, name: str, setting: Callable[[], Json], reserved: int = 0) -> Json:
        """A setting by name; ``reserved``: how many later ones there must be time for besides."""
        if time.monotonic() + (1 + reserved) * self._longest > self._end:
            return {"name": name, "status": "left out", "message": "there was no time left for it", "seconds": 0.0}
        start = time.monotonic()
        torch._dynamo.reset()
        try:
            with fresh_cache(Path(self.plan["job"]["folder"])):
                told = {"status": "ok", "message": "", **setting()}
        except (Exception, SystemExit) as error:
            explain(error)
            told = {"status": status_of(error), "message": self.message(error)}
        gc.collect()
        if torch.cuda.is_initialized():
            torch.cuda.empty_cache()
        seconds = time.monotonic() - start
        self._longest = max(self._longest, seconds)
        return {"name": name, **told, "seconds": round(seconds, 1)}

    def forget(self) -> None:
        """What was attempted so far says nothing about how long later settings take."""
        self._longest = 0.0

    def message(self, error: BaseException) -> str:
        """One line, with places as the user knows them."""
        return place_names(self.plan)(message_of(error))

    def reasons(self, since: int) -> list[Json]:
        """The recompilations after the first ``since``, with the guard that failed."""
        told = [
            {"function": row[0], "where": row[1], "guard": general_guard(row[2])}
            for row in self.listener.recompiles[since:]
        ]
        return told[:REASONS]


@contextlib.contextmanager
def fresh_cache(folder: Path) -> Iterator[None]:
    """An empty cache of the compiler below ``folder``, on disk and in memory."""
    inside = folder / "cache"
    inside.mkdir(parents=True, exist_ok=True)
    utils = torch._inductor.utils
    fresh = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache  # before 2.8
    with fresh(dir=str(inside)):
        yield


# ---------------------------------------------------------------------------------------------------------------------
# fullgraph: is each call captured whole?


def fullgraph(lab: Lab) -> Json:
    """Each call under ``fullgraph=True``: captured, or why not, and where."""
    backend = lab.tracing_backend() if lab.plan["quick"] else lab.backend
    options = {**lab.options(backend), "fullgraph": True}
    trial = Trial(lab, lambda model: lab.case.compile(model, options))
    rows = []
    for number, call in enumerate(lab.case.calls(), 1):
        row: Json = {"call": number, "captured": True, "message": "", "launches": 0, "seconds": None}
        try:
            told, row["seconds"] = trial.step(lab.case, call)
            row["launches"] = told["launches"]
        except (Exception, SystemExit) as error:
            if status_of(error) in ("case-error", "out-of-memory"):
                raise
            row.update(captured=False, message=lab.message(error))
        rows.append(row)
    implied = {"scalars": _captured(lambda x: x * x.sum().item()), "shapes": _captured(lambda x: x[x > 0] + 1)}
    return {"backend": backend, "own_compile": _compiles_itself(lab.case), "calls": rows, "implied": implied}


def _captured(function: Callable[[Any], Any]) -> bool:
    """Whether this torch captures under ``fullgraph=True`` what by default is a break."""
    torch._dynamo.reset()
    try:
        torch.compile(function, fullgraph=True, backend="eager")(torch.ones(3))
    except Exception:
        return False
    return True


def _compiles_itself(case: Case) -> bool:
    return getattr(case.module, "compile", None) is not None


# ---------------------------------------------------------------------------------------------------------------------
# vary-batch, vary-sequence: what other sizes cost, and whether marks on dimensions help.


class Attended:
    """The compiled callable; something is done to its arguments, eagerly, before each call."""

    def __init__(self, runner: Any, before: Callable[[dict[str, Any]], None]) -> None:
        self._runner, self._before = runner, before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        self._before(_named_tensors(_signature(self._runner), args, kwargs))
        return self._runner(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)


def _signature(runner: Any) -> inspect.Signature | None:
    model = getattr(runner, "_orig_mod", runner)
    try:
        return inspect.signature(model.forward if isinstance(model, torch.nn.Module) else model)
    except (TypeError, ValueError):
        return None


def _named_tensors(
    signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The tensors among the arguments, by parameter and path: ``images[0]``, ``cache['key']``."""
    named: dict[str, Any] = {"args": args, **kwargs}
    if signature is not None:
        with contextlib.suppress(TypeError):
            named = signature.bind(*args, **kwargs).arguments
            for name in [n for n, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD and n in named]:
                named.update(named.pop(name))
    found = (leaf for name, value in named.items() for leaf in leaves(value, name))
    return {name: leaf for name, leaf in found if torch.is_tensor(leaf)}


Shapes = list[dict[str, tuple[int, ...]]]  # of the tensors in each call of the model, by path


def vary(dimension: str, lab: Lab) -> Json:
    """The case's calls in several sizes: as they are, with the varying dimensions marked, and with ``dynamic=True``."""
    model = lab.case.build()
    chosen = _chosen(lab.case, model, dimension)
    steps, shapes, marks = chosen.steps, chosen.shapes, chosen.marks
    backend = lab.counting_backend()
    plain, dynamic = lab.options(backend), {**lab.options(backend), "dynamic": True}
    settings: list[tuple[str, Json, Mark | None]] = [("automatic", plain, None)]
    if marks:
        settings.append(("marked", plain, torch._dynamo.maybe_mark_dynamic))
    settings.append(("dynamic", dynamic, None))
    unbacked = getattr(torch._dynamo.decorators, "mark_unbacked", None)
    if unbacked is not None and any(1 in sizes for sizes in _sizes(shapes, marks)):
        settings.append(("unbacked", plain, unbacked))
    rows = [
        lab.attempt(name, functools.partial(_varied, lab, steps, options, mark, marks))
        for name, options, mark in settings
    ]
    sizes = [[step.size] if step.size else _first_sizes(own, marks) for step, own in zip(steps, shapes, strict=True)]
    return {
        "dimension": dimension,
        "chosen": steps[0].size is not None,
        "steps": [{"call": step.call, "sizes": own} for step, own in zip(steps, sizes, strict=True)],
        "backend": backend,
        "own_compile": _compiles_itself(lab.case),
        "marks": [{"path": path, "dims": dims} for path, dims in marks.items()],
        "also": [{"path": path, "dims": dims} for path, dims in chosen.also.items()],
        "model": type(model).__name__,
        "settings": rows,
    }


@dataclasses.dataclass(frozen=True)
class Step:
    """A call of the case, by number, made afresh by ``make``; ``size``: None where it was not chosen."""

    call: int
    size: int | None
    make: Callable[[], Any]


Marks = dict[str, list[int]]


@dataclasses.dataclass(frozen=True)
class Chosen:
    """What is run one after the other, and the shapes that the model is called with; ``marks``: what is to be marked.

    ``also``: what differs between the calls besides; a tensor that not all calls have has no dimensions there.
    """

    steps: list[Step]
    shapes: list[Shapes]
    marks: Marks
    also: Marks = dataclasses.field(default_factory=dict)


def _chosen(case: Case, model: Any, dimension: str) -> Chosen:
    """What suits best, so that the counts are those of that dimension.

    In this order: the sizes that ``calls()`` takes; the case's calls as they are, when they differ in that dimension
    and in nothing else; the first call, resized; the case's calls, whatever they differ in besides.
    """
    if dimension in inspect.signature(case.module.calls).parameters:
        return _resized(case, model, dimension)
    own = _own(case, model, dimension)
    if own.marks and not own.also:
        return own
    if not own.marks:
        if all(map(callable, dataclasses.replace(case, vary=None, sizes=None).calls())):
            raise UnsuitedError(
                f"the calls are functions of the model, all with one {dimension} size; "
                f"let calls() take a parameter {dimension!r}, a whole number with a default"
            )
        return _resized(case, model, dimension)
    try:
        resized = _resized(case, model, dimension)
    except UnsuitedError:
        return own
    return resized if resized.marks else own


def _own(case: Case, model: Any, dimension: str) -> Chosen:
    """The case's calls as they are."""
    plain = dataclasses.replace(case, vary=None, sizes=None)
    steps = [Step(n + 1, None, functools.partial(_nth, plain, n)) for n in range(len(plain.calls()))]
    shapes = [_shapes_of(case, model, step) for step in steps]
    calls = [call for step in shapes for call in step]
    found = varying([calls])
    marks = {p: asked for p, dims in found.items() if (asked := [d for d in dims if _is_of(dimension, d)])}
    also = {p: others for p, dims in found.items() if (others := [d for d in dims if not _is_of(dimension, d)])}
    also |= {path: [] for path in _sometimes(calls)}
    return Chosen(*(_ones_last(steps, shapes, marks) if marks else (steps, shapes)), marks, also)


def _is_of(dimension: str, dim: int) -> bool:
    return (dim == 0) == (dimension == "batch")


def _sometimes(calls: list[dict[str, tuple[int, ...]]]) -> list[str]:
    """The tensors that only some calls have, or not with the same rank."""
    paths = dict.fromkeys(path for call in calls for path in call)
    return [path for path in paths if len({len(call[path]) if path in call else None for call in calls}) > 1]


def _resized(case: Case, model: Any, dimension: str) -> Chosen:
    """The first call in several sizes."""
    sized = dataclasses.replace(case, vary=dimension, sizes=None)
    try:
        sizes = sorted(sizes_that_work(sized), key=lambda size: size == 1)
    except CaseError as error:
        raise UnsuitedError(str(error)) from error
    steps = [Step(1, n, functools.partial(_nth, dataclasses.replace(sized, sizes=[n]), 0)) for n in sizes]
    shapes = [_shapes_of(case, model, step) for step in steps]
    return Chosen(steps, shapes, varying(shapes))


def _ones_last(steps: list[Step], shapes: list[Shapes], marks: Marks) -> tuple[list[Step], list[Shapes]]:
    """A size of 1 is compiled for itself, marked or not: what comes first should be able to tell more than that."""
    both = list(zip(steps, shapes, strict=True))
    both.sort(key=lambda pair: _first_sizes(pair[1], marks) == [1])
    return [step for step, _ in both], [own for _, own in both]


def _nth(case: Case, number: int) -> Any:
    return case.calls()[number]


def _shapes_of(case: Case, model: Any, step: Step) -> Shapes:
    """The shapes that the model itself is called with, from an eager call."""
    shapes: Shapes = []

    def note(named: dict[str, Any]) -> None:
        shapes.append({name: tuple(tensor.shape) for name, tensor in named.items() if not tensor.is_nested})

    run_step(case, model, Attended(model, note), step.make(), None)
    return shapes


def varying(steps: list[Shapes]) -> Marks:
    """The dimensions, by the tensor's path, whose size is not the same in all steps.

    Where each step calls the model as often as the others, first calls are compared with first calls, and so on: what
    changes within a step is not what is varied.
    """
    if len(steps) > 1 and len({len(step) for step in steps}) == 1:
        alike = [[step[number] for step in steps] for number in range(len(steps[0]))]
    else:
        alike = [[call for step in steps for call in step]]
    found: dict[str, set[int]] = {}
    for calls in alike:
        for path in dict.fromkeys(path for call in calls for path in call):
            met = {call[path] for call in calls if path in call}
            for rank in {len(shape) for shape in met}:
                of_rank = [shape for shape in met if len(shape) == rank]
                found.setdefault(path, set()).update(d for d in range(rank) if len({s[d] for s in of_rank}) > 1)
    return {path: sorted(dims) for path, dims in found.items() if dims}


def _sizes(shapes: list[Shapes], marks: Marks) -> Iterator[set[int]]:
    """The sizes that each marked dimension had."""
    for path, dims in marks.items():
        met = [call[path] for step in shapes for call in step if path in call]
        yield from ({shape[d] for shape in met if d < len(shape)} for d in dims)


def _first_sizes(shapes: Shapes, marks: Marks) -> list[int]:
    """The sizes that the first of the marked dimensions has within a step, in order."""
    path, dims = next(iter(marks.items()))
    return list(dict.fromkeys(call[path][dims[0]] for call in shapes if dims[0] < len(call.get(path, ()))))


def _varied(lab: Lab, steps: list[Step], options: Json, mark: Mark | None, marks: Marks) -> Json:
    """All steps twice, under one setting: each step's counts the first time, and those of the second round."""
    marking = Marking(mark, marks)
    trial = Trial(lab, lambda model: lab.case.compile(model, options))
    runner = Attended(trial.runner, marking.attach)
    since = len(lab.listener.recompiles)
    try:
        rows = [trial.step(lab.case, step.make(), runner)[0] for step in steps]
        reasons = lab.reasons(since)
        before = lab.listener.counts()
        for step in steps:
            trial.step(lab.case, step.make(), runner)
    finally:
        marking.undo()
    return {"steps": rows, "again": _difference(before, lab.listener.counts()), "reasons": reasons}


class Marking:
    """Marks dimensions of arguments, and takes the marks back: a case may give the same tensor in each setting."""

    def __init__(self, mark: Mark | None, marks: Marks) -> None:
        self._mark, self._marks = mark, marks
        self._marked = torch.utils.weak.WeakTensorKeyDictionary()  # with the attributes that were there before

    def attach(self, named: dict[str, Any]) -> None:
        """Mark what is named; dimensions that a tensor does not have are passed over."""
        if self._mark is None:
            return
        for path, dims in self._marks.items():
            for dim in dims:
                if path in named and dim < named[path].dim():
                    self._marked.setdefault(named[path], set(vars(named[path])))
                    self._mark(named[path], dim)

    def undo(self) -> None:
        """As if nothing had been marked."""
        for tensor, before in list(self._marked.items()):
            for name in set(vars(tensor)) - before:
                delattr(tensor, name)
        self._marked.clear()


# ---------------------------------------------------------------------------------------------------------------------
# latency, ablation: settings that are timed one after the other.


def latency(lab: Lab) -> Json:
    """The first pass and the warm passes, compiled as a whole and block by block."""
    plain = Trial(lab, None)
    plain.first_pass()
    found, exact, device = repeated_blocks(plain.model), plain.outputs, plain.device
    blocks = [{"path": path, "class": type(made[0]).__name__, "count": len(made)} for path, made in found]
    del plain, found
    if not blocks:
        return {"told": "", "settings": []}
    rouse(lab, device)
    ways = {"whole model": _compiled_whole, "block by block": _compiled_blocks}
    settings = [
        lab.attempt(name, functools.partial(_timed, lab, functools.partial(way, lab), exact, {}))
        for name, way in ways.items()
    ]
    told = ", ".join(f"{b['count']} x {b['class']} in {b['path'] or 'the model'}" for b in blocks)
    return {"told": f"{told}; backend {lab.backend}", "settings": settings}


def rouse(lab: Lab, device: Any) -> None:
    """Compile something small: what the compiler does once in a process must not count for the first setting."""

    def small(x: Any) -> Any:
        return torch.nn.functional.gelu(x @ x).sum()

    def compiled() -> Json:
        result = torch.compile(small, **lab.options())(torch.ones(4, 4, device=device, requires_grad=lab.case.train))
        if lab.case.train:
            result.backward()
        return {}

    lab.attempt("small", compiled)
    lab.forget()


def _compiled_whole(lab: Lab, model: Any) -> Any:
    return torch.compile(model, **lab.options())


def _compiled_blocks(lab: Lab, model: Any) -> Any:
    for _, blocks in repeated_blocks(model):
        for block in blocks:
            block.compile(**lab.options())
    return model


def ablation(lab: Lab) -> Json:
    """The times with each option turned to its other value; the defaults come first and last, so that drift shows."""
    if lab.backend != "inductor":
        raise UnsuitedError(f"it is about options of inductor, and the backend is {lab.backend}")
    config = torch._inductor.config
    fixed = torch._inductor.list_mode_options(lab.mode) if lab.mode != "default" else {}
    tried = [name for name in ABLATED if isinstance(getattr(config, name, None), bool) and name not in fixed]
    plain = Trial(lab, None)
    plain.first_pass()
    if plain.draws_random:
        config.fallback_random = True  # else compiled code draws other numbers than eager code
    timed = functools.partial(_timed, lab, lambda model: lab.case.compile(model, lab.options()), plain.outputs)
    device = plain.device
    del plain
    rouse(lab, device)
    rows = [lab.attempt("default", functools.partial(timed, {}), 1)]
    for name in tried:
        value = not getattr(config, name)
        row = lab.attempt(f"{name}={value}", functools.partial(timed, {name: value}), 1)
        given = f'torch.compile(model, options={{"{name}": {value}}})'
        if lab.mode != "default":  # torch.compile takes a mode or options, not both
            given = f"torch._inductor.config.{name} = {value}"
        rows.append({**row, "given": given})
    rows.append(lab.attempt("default", functools.partial(timed, {})))
    return {"told": f"mode {lab.mode}", "settings": rows}


def _timed(lab: Lab, compiled: Callable[[Any], Any], exact: Mapping[str, Any], patch: Json) -> Json:
    with torch._inductor.config.patch(patch):
        trial = Trial(lab, compiled)
        told, seconds = trial.first_pass()
        apart = largest_difference(trial.outputs, exact)
        settled = trial.settle()
        return {"first": told, "first_seconds": seconds, "settled": settled, "difference": apart, **trial.warm()}


def largest_difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float | None:
    """Between floating outputs, NaN where only one of two is NaN; None where there is nothing to compare."""
    largest: float | None = None
    for name, exact in theirs.items():
        own = ours.get(name)
        if isinstance(own, torch.Tensor) and own.shape == exact.shape and exact.numel():
            a, b = own.double(), exact.double()
            alike = (a == b) | (a.isnan() & b.isnan())
            apart = float(torch.where(alike, torch.zeros_like(a), (a - b).abs()).max())
            worse = largest is None or apart > largest or math.isnan(apart)
            largest = apart if worse else largest  # nothing is greater than NaN
    return largest


# ---------------------------------------------------------------------------------------------------------------------

PROBES: dict[str, Callable[[Lab], Json]] = {
    "fullgraph": fullgraph,
    "vary-batch": functools.partial(vary, "batch"),
    "vary-sequence": functools.partial(vary, "sequence"),
    "latency": latency,
    "ablation": ablation,
}


def answer(plan: Json) -> Json:
    """The figures of the probe that the job names; a failure becomes a status and one line."""
    try:
        return {"status": "ok", "message": "", **probe(plan)}
    except (Exception, SystemExit) as error:
        explain(error)
        return {"status": status_of(error), "message": message_of(error)}


def probe(plan: Json) -> Json:
    """Set up as the worker does for a compiled variant of the original, and run the experiment."""
    job: Json = plan["job"]
    if job["probe"] not in PROBES:
        raise UnsuitedError(f"there is no probe {job['probe']!r}; known: {', '.join(PROBES)}")
    if plan["cases"][job["case"]].get("recorded"):
        raise UnsuitedError("a recorded program is not measured in this way")
    limit_memory(plan["memory"])
    listener = Listener(place_names(plan))
    overlay_of(plan).install(job["tree"] == "patched")
    listener.count_graphs()
    if job.get("draws_random"):
        torch._inductor.config.fallback_random = True
    with listening(listener, plan["verbose"]):
        case = load_case(plan, job)
        if case.vary and not case.sizes:
            case.sizes = sizes_that_work(case)
        attend(listener, plan["verbose"])
        return PROBES[job["probe"]](Lab(plan, case, listener))


def leave_answer(answered: Callable[[Json], Json]) -> None:
    """Answer the spec that the command line names, beside it, and end."""
    spec: Json = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    die_with_parent()
    explain_ends(spec)
    prepare_path(spec["path"], spec["cases"][spec["job"]["case"]]["file"])
    folder = Path(spec["job"]["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "result.json", answered(spec))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # as the worker: nobody waits for threads and processes that the compiler has left behind


def main() -> None:
    """The command line."""
    leave_answer(answer)


if __name__ == "__main__":
    main()
