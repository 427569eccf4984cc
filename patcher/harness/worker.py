"""Measure one variant of a case. Runs by itself: the standard library and torch, nothing else of ours.

    python worker.py SPEC.json

SPEC.json is a plan (docs/harness.md) with one more key: ``job`` says which case, which source (``tree``: "original" or
"patched"), how it runs (``kind``: "eager", "compiled" or "float64"), in which ``mode``, and the ``folder`` for what was
computed. The answer is ``result.json`` in that folder.

What it needs lies beside it. The patched variants import the same paths as the original; for the
files in the plan's ``overlay`` the patched bytes are compiled instead (and for the original its own, where the files on
disk are the patched ones). Nothing is written outside the job's folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import inspect
import json
import os
import pkgutil
import platform
import resource
import signal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor.config

if not __package__:  # what lies beside this file is one package, under a name that no user has
    __package__ = "_fix_compile_harness"
    sys.modules[__package__] = types.ModuleType(__package__)
    sys.modules[__package__].__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules[f"{__package__}.worker"] = sys.modules[__name__]

from . import pairs
from .failures import MissingSettingError, UnsuitedError, explain, explain_ends, message_of, status_of
from .leaves import OUTPUT_ELEMENTS, leaves, on_host, same_facts
from .listener import Listener, attend, listening, place_names
from .overlay import Overlay, overlay_of, prepare_path
from .passes import USUAL_BACKEND, Run, peak_memory, write_json
from .running_case import SEED, Case, blocks_of, classes_of, load_case, parameters_of, sizes_that_work

Json = dict[str, Any]
_COMPILE_ARGUMENTS = frozenset(inspect.signature(torch.compile).parameters)


def answer(measured: Callable[[], Json]) -> Json:
    """Measure; a failure becomes a status and one line, with the traceback in the log."""
    try:
        return {"status": "ok", "message": "", **measured()}
    except (Exception, SystemExit) as error:
        explain(error)
        return {"status": status_of(error), "message": message_of(error)}


def die_with_parent() -> None:
    """The system ends this process when the supervisor is gone (Linux only)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def measure(plan: Json, live: Any = None, overlay: Overlay | None = None) -> Json:
    """Everything about one variant; what it computed is saved in the job's folder for the comparison.

    ``live``: a recorded program that has come to its first call, with its ``overlay`` in place.
    """
    job: Json = plan["job"]
    plan = {**plan, "backend": "eager"} if job.get("replayed") else plan
    limit_memory(plan["memory"])
    listener = Listener(place_names(plan), plan["cases"][job["case"]]["file"])
    overlay = overlay or _laid(plan)
    compiling, patched = job["kind"] == "compiled", job["tree"] == "patched"
    watched = patched and job["kind"] in ("compiled", "eager")
    if compiling:
        _prepare(plan, listener)
    if watched:
        overlay.attend() if compiling else overlay.watch(True)
    settings = plan.get("settings", []) if compiling and patched else []
    with listening(listener, plan["verbose"]) if compiling else contextlib.nullcontext(), in_force(settings):
        case = load_case(plan, job, live)
        if case.vary and not case.sizes:
            case.sizes = sizes_that_work(case)
        blocks = [s["name"] for s in settings if s["kind"] == "blocks"]
        arguments = {s["name"]: s["value"] for s in settings if s["kind"] == "argument"}
        made = functools.partial(Run, plan, case, listener, arguments, blocks)
        if job.get("paired"):
            return paired(plan, made)
        run = made()
        if compiling:
            attend(listener, plan["verbose"])
        if (compared := _compared_only(run, job, overlay)) is not None:
            return compared
        told = run.counted(overlay if watched and not compiling else None)
        if not (plan.get("counting") or plan.get("untimed") if compiling else plan.get("eager_untimed")):
            told.update(run.warm())
            told["eager_lines"] = run.eager_lines(told) if compiling else []
        elif not compiling:
            told["memory"] = peak_memory(run.device)  # by which it is decided how many may run at a time
    if watched:
        told["places"] = overlay.places()
    if not patched and job["kind"] == "eager":
        again = load_case(plan, job, live)
        again.sizes = case.sizes
        repeated = Run(plan, again, listener)
        told |= {"repeatable": repeated.once() == run.first, "sizes": case.sizes}
        run.keep_facts({name: run.facts[name] for name in same_facts(run.facts, repeated.facts)})
    loaded = sorted({entry["shown"] for entry in overlay.loaded.values()})
    return {**told, "loaded": loaded, "environment": environment(run.device), "case": _about(case, run)}


def _prepare(plan: Json, listener: Listener) -> None:
    """What has to be in force before something is compiled."""
    if plan["backend"] != USUAL_BACKEND:
        compile_with(plan["backend"])
    listener.count_graphs()
    torch._dynamo.config.use_numpy_random_stream = True  # else compiled code draws other numbers than eager code
    if plan["job"].get("draws_random"):
        torch._inductor.config.fallback_random = True  # the same of torch's


def _compared_only(run: Run, job: Json, overlay: Overlay) -> Json | None:
    """What is told of passes of which only results are compared, or expressions looked at; None of all others."""
    if overlay.observer is not None:
        return run.observed(overlay.observer)
    if job["kind"] == "float64":
        return run.in_double()
    if job.get("nudged"):
        return run.nudged()
    return run.replayed(job["replayed"]) if job.get("replayed") else None


def _about(case: Case, run: Run) -> Json:
    return {
        "train": case.train,
        "tolerance": case.tolerance,
        "device": run.device.type,
        "dtype": str(case.dtype).removeprefix("torch.") if case.dtype else None,
        "classes": classes_of(run.model, case.module.__name__),
        "blocks": blocks_of(case, run.model),
    }


def compile_with(backend: str) -> None:
    """Have calls of ``torch.compile`` in the user's code take this backend where they would take the usual one."""
    usual = torch.compile

    @functools.wraps(usual)
    def compiling(*args: Any, **options: Any) -> Any:
        named = options.get("backend", USUAL_BACKEND)
        return usual(*args, **{**options, "backend": backend if named == USUAL_BACKEND else named})

    torch.compile = compiling


def paired(plan: Json, made: Callable[[], Run]) -> Json:
    """A pass in which each compiled call is made by the original, too, on the same arguments; both are saved."""
    folder = Path(plan["job"]["folder"])

    def keep(number: int, kind: str, named: list[tuple[str, Any]]) -> None:
        record = {"leaves": on_host(named, OUTPUT_ELEMENTS), "shared": [], "gradients": []}
        torch.save(record, folder / kind / f"pass1-call{number}.pt")

    for part in pairs.KINDS:
        (folder / part).mkdir(exist_ok=True)
    run: Run | None = None
    near = functools.cache(lambda run: list(pairs.neighbours(parameters_of(run.model).values(), SEED)) if run else [])
    with pairs.paired(keep, leaves, lambda: pairs.moved(near(run))) as calls:
        run = made()
        run.once()
    if not calls():
        raise UnsuitedError("nothing is compiled by itself inside of the call")
    return {"draws_random": False, "paired": calls()}


def _of_run(name: str) -> Any:
    """A module of the folder ``run``, by where its file lies from here."""
    file = Path(__file__).parents[1] / "run" / name
    spec = importlib.util.spec_from_file_location(f"_fix_compile_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    made = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def _laid(plan: Json) -> Overlay:
    """The plan's overlay, in force from here on."""
    overlay = overlay_of(plan)
    overlay.install(plan["job"]["tree"] == "patched")
    if plan["job"].get("observed"):
        overlay.observer = _of_run("observing.py").Observer(plan["observed"])
        overlay.observer.install()
    return overlay


@contextlib.contextmanager
def in_force(settings: Sequence[Json]) -> Iterator[None]:
    """The settings that are Dynamo's configuration; raises ``MissingSettingError`` for any that this torch lacks."""
    config = torch._dynamo.config
    for setting in (one for one in settings if one["kind"] != "blocks"):
        argument = setting["kind"] == "argument"
        if not (setting["name"] in _COMPILE_ARGUMENTS if argument else hasattr(config, setting["name"])):
            raise MissingSettingError(f"torch {torch.__version__} has no setting {setting['name']}")
    changed: Json = {s["name"]: s["value"] for s in settings if s["kind"] == "config"}
    for setting in (s for s in settings if s["kind"] == "member"):
        name = setting["name"]
        changed[name] = {*changed.get(name, getattr(config, name)), _named_object(setting["value"])}
    with config.patch(**changed) if changed else contextlib.nullcontext():
        yield


def _named_object(dotted: str) -> Any:
    """What a dotted name stands for: ``builtins.print``, ``logging.Logger.info``."""
    with contextlib.suppress(ImportError):
        return pkgutil.resolve_name(dotted)
    raise MissingSettingError(f"there is no {dotted}")


def limit_memory(limit: int | None) -> None:
    """Make allocations fail that go beyond the limit, in bytes: a large one is quicker than ``run.py`` looks.

    Not with CUDA, whose address space is much larger than what it uses.
    """
    if limit and not torch.cuda.is_available():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def environment(device: Any) -> Json:
    """Where the figures come from."""
    cuda = device.type == "cuda"
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": torch.cuda.get_device_name(device) if cuda else device.type,
        "cuda": torch.version.cuda if cuda else None,
        "memory": torch.cuda.get_device_properties(device).total_memory if cuda else None,
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": torch.get_num_threads(),
    }


def begun() -> Json:
    """The spec that the command line names, with this process set up for it."""
    spec: Json = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    die_with_parent()
    explain_ends(spec)
    prepare_path(spec["path"], spec["cases"][spec["job"]["case"]]["file"])
    Path(spec["job"]["folder"]).mkdir(parents=True, exist_ok=True)
    return spec


def main() -> None:
    """The command line."""
    spec = begun()
    finish(spec, measure)


def finish(spec: Json, measured: Callable[..., Json]) -> None:
    """Leave what ``measured`` tells of the spec, and end the process."""
    recorded = spec["cases"][spec["job"]["case"]].get("recorded")
    end(spec, answer_within(spec, Path(recorded), measured) if recorded else answer(lambda: measured(spec)))


def answer_within(spec: Json, recording: Path, measured: Callable[..., Json]) -> Json:
    """Run a recorded program to its first recorded call, and measure there, which ends the process.

    Returns what to answer when it does not come to that call.
    """
    recorded = _of_run("recorded.py")
    try:
        overlay = _laid(spec)
        if spec["job"]["tree"] == "patched" and spec["job"].get("kind") == "eager":
            overlay.watch(True)
        recorded.reach(recording, lambda live: end(spec, answer(lambda: measured(spec, live, overlay))))
    except (Exception, SystemExit) as error:
        if isinstance(error, SystemExit) and error.code in (None, 0):
            return {"status": "case-error", "message": "the program ended before the recorded call"}
        explain(error)
        patched = spec["job"]["tree"] == "patched"
        return {"status": "error" if patched else "case-error", "message": f"the program raised {message_of(error)}"}
    return {"status": "case-error", "message": "the program ended before the recorded call"}


def end(spec: Json, told: Json) -> None:
    """Leave the answer, and end the process."""
    write_json(Path(spec["job"]["folder"]) / "result.json", told)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads and processes that the case or the compiler has left behind are not waited for


if __name__ == "__main__":
    main()
