"""Experiments on one case beyond the harness's variants: ``python probes.py SPEC.json``.

SPEC.json is a plan with a ``job`` that names the ``probe``, one of ``PROBES``, and the ``case``; the answer is
``result.json`` in the job's ``folder``. docs/diagnostics.md says what each probe measures. Standard library, torch and
``worker.py``, which lies beside this file.

An experiment consists of settings. Each gets a fresh model, a reset Dynamo and an empty cache of the compiler; one
that fails is a figure like others, and one for which there is no time left is left out and says so.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch._dynamo
import torch._inductor
import torch._inductor.config

if not __package__:  # run by its path: what lies beside it is one package
    __package__ = str(__import__("worker").__package__)

from .failures import UnsuitedError, status_of
from .listener import Listener, attend, listening, place_names
from .overlay import Overlay, overlay_of
from .running_case import load_case, repeated_blocks, sizes_that_work
from .sizes import vary
from .trials import Json, Lab, Trial, compiles_itself
from .worker import begun, finish, in_force, limit_memory

ABLATED = ("epilogue_fusion", "aggressive_fusion", "coordinate_descent_tuning", "max_autotune", "split_reductions")


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
    return {"backend": backend, "own_compile": compiles_itself(lab.case), "calls": rows, "implied": implied}


def _captured(function: Callable[[Any], Any]) -> bool:
    """Whether this torch captures under ``fullgraph=True`` what by default is a break."""
    torch._dynamo.reset()
    try:
        torch.compile(function, fullgraph=True, backend="eager")(torch.ones(3))
    except Exception:
        return False
    return True


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
    ways = {
        "whole model": lambda lab, model: lab.case.compile(model, lab.options()),
        "block by block": _compiled_blocks,
    }
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


def probe(plan: Json, live: Any = None, overlay: Overlay | None = None) -> Json:
    """Set up as the worker does for a compiled variant, and run the experiment. ``live`` and ``overlay``: as there."""
    job: Json = plan["job"]
    if job["probe"] not in PROBES:
        raise UnsuitedError(f"there is no probe {job['probe']!r}; known: {', '.join(PROBES)}")
    limit_memory(plan["memory"])
    listener = Listener(place_names(plan))
    patched = job["tree"] == "patched"
    if overlay is None:
        overlay_of(plan).install(patched)
    settings = plan.get("settings", []) if patched else []
    listener.count_graphs()
    if job.get("draws_random"):
        torch._inductor.config.fallback_random = True
    with listening(listener, plan["verbose"]), in_force(settings):
        case = load_case(plan, job, live)
        if case.vary and not case.sizes:
            case.sizes = sizes_that_work(case)
        attend(listener, plan["verbose"])
        given = {one["name"]: one["value"] for one in settings if one["kind"] == "argument"}
        return PROBES[job["probe"]](Lab(plan, case, listener, given))


def main() -> None:
    """The command line."""
    finish(begun(), probe)


if __name__ == "__main__":
    main()
