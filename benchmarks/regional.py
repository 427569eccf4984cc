"""Whole models against their blocks one by one: the first step, later ones, graphs and results, on a GPU.

    python benchmarks/regional.py measure --nanovlm TREE OUT             # there: torch only; leaves OUT/regional.json
    python benchmarks/regional.py page OUT/regional.json ... --into docs/results/calls.md

TREE is a checkout of nanoVLM, patched. The lines that compile a way are executed as a page shows them. The first step
of each way is taken in a process of its own with an
empty cache, after steps in eager mode, so that no library starts in it; the ways are then timed in one more process,
in turn. With ``--short`` that process is also the first way's own, in which it is compiled before the others; the
others find what they have compiled earlier, and no second processes run. A way without a process of its own is told by
its first step there.
``--seconds``: for all of it; a process that is not reached is left out and said to be.
"""

from __future__ import annotations

import argparse
import copy
import gc
import importlib
import json
import logging
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "cases"), str(HERE.parent / "patcher" / "harness")]

Json = dict[str, Any]
WARM, LEAST, MOST = 4.0, 5, 40  # seconds, and steps of each way, that are timed in turn
ROOM = 10.0  # seconds without which no process is started


@dataclass(frozen=True)
class Model:
    """A model and a step of it; with the first of the ``ways`` the others are compared.

    ``given``: rows and words of a batch, where the step is one of training. ``warm``: those whose first step is not
    measured, only later ones.
    """

    name: str
    title: str
    case: str
    ways: tuple[str, ...]
    given: tuple[int, int] | None = None
    warm: tuple[str, ...] = ()


MODELS = (
    Model(
        "flux",
        "A transformer of FLUX's kind, a denoising step of 1024 x 1024 pixels",
        "flux_step",
        ("default", "default, blocks", "reduce-overhead, blocks"),
    ),
    Model(
        "nanovlm",
        "nanoVLM, a training step of 2 x 4096 words and two images",
        "nanovlm_train",
        ("default", "default, blocks"),
        (2, 4096),
    ),
    Model(
        "nanovlm-blocks",
        "The same step, only its blocks compiled, on another machine of the kind",
        "nanovlm_train",
        ("default, blocks", "reduce-overhead, blocks"),
        (2, 4096),
        ("reduce-overhead, blocks",),
    ),
    Model(
        "nanovlm-modes",
        "The same step, the whole and blocks with CUDA graphs, on a third machine of the kind",
        "nanovlm_train",
        ("default", "reduce-overhead, blocks"),
        (2, 4096),
    ),
)


# ---------------------------------------------------------------------------------------------------------------------
# In a process of its own.


class Step:
    """A model's step: ``run(model)`` returns what it computes, as float32 tensors by name."""

    def __init__(self, one: Model) -> None:
        import torch

        self.torch, self.case = torch, importlib.import_module(one.case)
        self.train = one.given is not None
        self.device, dtype = torch.device(self.case.device), getattr(self.case, "dtype", None)
        self.model = self.case.build().to(self.device, dtype)
        if one.given is None:
            self.call: Any = tuple(t.to(self.device, dtype if t.is_floating_point() else None) for t in self._only())
        else:
            nanovlm: Any = importlib.import_module("_nanovlm")
            rows, words = one.given if self.case.RELEASED else (2, 32)
            self.call = tuple(t.to(self.device) for t in nanovlm.words_and_images(rows, words))

    def _only(self) -> Any:
        (call,) = self.case.calls()
        return call

    def run(self, model: Any) -> Json:
        torch = self.torch
        torch.compiler.cudagraph_mark_step_begin()
        if not self.train:
            with torch.no_grad():
                return {"out": model(*self.call)}
        model.zero_grad(set_to_none=True)
        output = self.case.mixed(*self.call, model)
        loss = output[1]
        loss.backward()
        return {"loss": loss.detach()}

    def kept(self, model: Any, told: Json) -> Json:
        """What later steps may overwrite, as it is now; of training, the gradients too."""
        made = {name: tensor.float().clone() for name, tensor in told.items()}
        if self.train:
            plain = {name.replace("_orig_mod.", ""): p.grad for name, p in model.named_parameters()}
            made |= {name: grad.float().clone() for name, grad in plain.items() if grad is not None}
        return made

    def seconds(self, model: Any) -> float:
        """A step that is waited for."""
        self.wait()
        start = time.perf_counter()
        self.run(model)
        self.wait()
        return time.perf_counter() - start

    def wait(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def again(self) -> Any:
        """A second module with the same parameters."""
        state = [*self.model.parameters(), *self.model.buffers()]
        return copy.deepcopy(self.model, {id(tensor): tensor for tensor in state})


class Eager:
    """A model as it is called before anything is compiled."""

    def __init__(self, model: Any) -> None:
        self.model, self.parameters, self.zero_grad = model, model.parameters, model.zero_grad

    def __call__(self, *arguments: Any) -> Any:
        return self.model.forward(*arguments)


class Recompiles(logging.Handler):
    """Counts what Dynamo tells of recompilations."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.getMessage().startswith("Recompiling function")


def compiled(model: Any, name: str) -> list[str]:
    """Execute what is written for a way: a mode, with ", blocks" for the blocks one by one; the lines."""
    probes: Any = importlib.import_module("probes")
    mode, _, scope = name.partition(", ")
    arguments = "" if mode == "default" else f'mode="{mode}"'
    lists = [path for path, _ in probes.repeated_blocks(model)] if scope else []
    lines = [f"for block in model.{path}: block.compile({arguments})" for path in lists]
    lines = lines or [f"model.compile({arguments})"]
    exec("\n".join(lines), {"model": model})
    return lines


def attended() -> Recompiles:
    import torch
    import torch._dynamo

    heard = Recompiles()
    torch._logging.set_logs(recompiles=True)
    for name in ("torch.__recompiles", "torch._dynamo.guards.__recompiles"):
        logger = logging.getLogger(name)
        logger.addHandler(heard)
        logger.propagate = False
    return heard


def with_cache(folder: Path) -> None:
    """From now on the compiler's cache lies in this folder, and what it remembers of another one is forgotten."""
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")
    os.environ["TRITON_CACHE_DIR"] = str(folder / "triton")
    importlib.import_module("torch._inductor.utils").clear_caches()


def first(one: Model, names: list[str], in_turn: bool, caches: Path | None = None) -> Json:
    """The first step of a way, and what it computes beside eager; ``in_turn``: the ways are then timed.

    ``caches``: a folder with one for each of the model's ways, by number, and the first one's also for those whose
    first step does not count; None: all use the environment's.
    """
    import torch
    from torch._dynamo.utils import counters

    heard, step = attended(), Step(one)
    cuda = step.device.type == "cuda"
    eager = step.kept(step.model, step.run(step.model))
    again = step.kept(step.model, step.run(step.model))
    told: Json = {"eager": _apart(again, eager), "parameters": _count(step.model)}
    del again
    step.wait()
    models: dict[str, Any] = {}
    for name in names:
        model = models[name] = step.again() if in_turn else step.model
        before = counters["stats"]["unique_graphs"]
        if caches is not None:
            with_cache(caches / str(0 if name in one.warm else one.ways.index(name)))
        lines = compiled(model, name)
        try:
            row = _measured(step, model, eager)
        except Exception as error:
            told[name] = {"error": _one_line(error)}
            models.pop(name, None)
            continue
        graphs = counters["stats"]["unique_graphs"] - before
        told[name] = {"lines": lines, "graphs": graphs, "recompiles": heard.count, **row}
        print(json.dumps({name: told[name]}), file=sys.stderr, flush=True)  # whatever ends this process
        heard.count = 0
        gc.collect()
    if in_turn:
        del eager
        models = {"eager": Eager(step.model), **models}
        for name in [*models]:  # after another model's: what a step leaves behind is not as it was
            try:
                step.seconds(models[name])
            except Exception as error:
                told[name] = {"error": _one_line(error)}
                del models[name]
        told["turns"] = turns(step, models)
        told["busy"] = {name: busy(step, model) for name, model in models.items()} if cuda else {}
    told["environment"] = {
        "torch": torch.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "cuda": torch.version.cuda,
        "cores": len(os.sched_getaffinity(0)),
    }
    return told


def _measured(step: Step, model: Any, eager: Json) -> Json:
    """The first step of a compiled model, in seconds, later ones, the peak of memory, and what it computes."""
    cuda = step.device.type == "cuda"
    start = time.perf_counter()
    step.run(model)
    step.wait()
    row: Json = {"cold": time.perf_counter() - start, "next": [step.seconds(model) for _ in range(2)]}
    if cuda:
        step.torch.cuda.reset_peak_memory_stats()
    row["steps"] = [step.seconds(model) for _ in range(3)]
    row["memory"] = step.torch.cuda.max_memory_allocated() if cuda else None
    row["apart"] = _apart(step.kept(model, step.run(model)), eager)
    return row


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}"[:2000].split())


def turns(step: Step, models: dict[str, Any]) -> Json:
    """Seconds of steps, each waited for: one of each model, then the next of each, in an order that turns."""
    times: dict[str, list[float]] = {name: [] for name in models}
    order, start = list(models), time.perf_counter()
    while len(times[order[0]]) < MOST and (
        len(times[order[0]]) < LEAST or time.perf_counter() - start < WARM * len(order)
    ):
        for name in order:
            times[name].append(step.seconds(models[name]))
        order.append(order.pop(0))
    return times


def busy(step: Step, model: Any, steps: int = 3) -> float:
    """Seconds of a step in which the GPU runs a kernel or copies, by the profiler."""
    profiler = step.torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as told:
        for _ in range(steps):
            step.seconds(model)
    return float(sum(event.self_device_time_total for event in told.key_averages())) / steps / 1e6


def _apart(one: Json, other: Json) -> Json:
    """Mean and largest difference of what is returned, and how large that is; of gradients, the relative difference."""
    told: Json = {"mae": 0.0, "most": 0.0, "mean": 0.0, "gradients": 0.0}
    squares = [0.0, 0.0]
    for name, tensor in other.items():
        apart = (one[name] - tensor).abs()
        if name in ("out", "loss"):
            told |= {"mae": float(apart.mean()), "most": float(apart.max()), "mean": float(tensor.abs().mean())}
        else:
            squares = [squares[0] + float(apart.square().sum()), squares[1] + float(tensor.square().sum())]
    told["gradients"] = (squares[0] / squares[1]) ** 0.5 if squares[1] else None
    assert other.keys() == one.keys(), other.keys() ^ one.keys()
    return told


def _count(model: Any) -> Json:
    probes: Any = importlib.import_module("probes")
    blocks = {path: len(found) for path, found in probes.repeated_blocks(model)}
    return {"parameters": sum(p.numel() for p in model.parameters()), "blocks": blocks}


# ---------------------------------------------------------------------------------------------------------------------
# The processes, one after another on a machine that does nothing else.


def measure(out: Path, tree: Path, seconds: float, names: list[str], short: bool) -> None:
    """Write ``regional.json`` after each process, so that what was measured is there whatever ends the run."""
    end, told = time.monotonic() + seconds, dict[str, Any]()
    out.mkdir(parents=True, exist_ok=True)
    for one in (model for model in MODELS if model.name in names):
        with tempfile.TemporaryDirectory(prefix="regional-") as folder:
            rows: Json = {}
            told[one.name] = rows
            for job, ways, kept in _jobs(one, Path(folder), short):
                left = end - time.monotonic()
                good = tuple(n for n in ways if rows.get(f"cold: {n}", {"status": "ok"})["status"] == "ok")
                if not good:
                    rows[job] = {"status": "the first process did not end well"}
                elif left < ROOM:
                    rows[job] = {"status": "there was no time left for it"}
                else:
                    rows[job] = _process(one, good, kept, tree, left, job == "turns", short)
                print(one.name, job, rows[job]["status"], round(rows[job].get("seconds", 0.0), 1), flush=True)
                (out / "regional.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


def _jobs(one: Model, folder: Path, short: bool) -> Iterator[tuple[str, tuple[str, ...], Path]]:
    """What runs: a name, the ways, and the folder of the compiler's cache; of caches, when it is ``short``."""
    cold = [(number, name) for number, name in enumerate(one.ways) if name not in one.warm]
    for number, name in cold[short:]:
        yield f"cold: {name}", (name,), folder / str(number)
    if short:
        yield "turns", one.ways, folder
        return
    for number, name in cold[1:]:
        yield f"second: {name}", (name,), folder / str(number)
    for number in range(1, len(one.ways)):
        if (folder / str(number)).exists():
            shutil.copytree(folder / str(number), folder / "0", dirs_exist_ok=True)
    yield "turns", one.ways, folder / "0"


def _process(
    one: Model, ways: tuple[str, ...], cache: Path, tree: Path, limit: float, in_turn: bool, short: bool
) -> Json:
    variables = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(tree), os.environ.get("PYTHONPATH", "")))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
        "CASE_SIZE": os.environ.get("CASE_SIZE", "released"),
    }
    start = time.monotonic()
    command = [sys.executable, str(Path(__file__).resolve()), "one", one.name, *ways]
    command += ["--turns"] if in_turn else []
    command += ["--caches", str(cache)] if in_turn and short else []
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"status": f"did not end within {limit:.0f} s", "seconds": limit}
    seconds = time.monotonic() - start
    if done.returncode:
        tail = done.stderr.strip().splitlines()[-30:]
        print(*tail, sep="\n", flush=True)
        return {"status": f"ended with {done.returncode}", "tail": tail, "seconds": seconds}
    return {"status": "ok", "seconds": seconds, **json.loads(done.stdout.strip().splitlines()[-1])}


# ---------------------------------------------------------------------------------------------------------------------
# The page.


_MISSING: Json = {"status": "was not run"}


def page(told: Json) -> str:
    """A table for each model."""
    return "\n".join(_lines(told)).rstrip()


def _lines(told: Json) -> Iterator[str]:
    from tables import table

    head = (
        "way",
        "first step, s",
        "first way's / this",
        "second process, s",
        "step ms, in turn",
        "this / first way's",
        "GPU busy, ms",
        "graphs",
        "recompiles",
        "peak GB",
        "MAE to eager",
        "gradients",
    )
    for one in MODELS:
        rows = told.get(one.name)
        if not rows or not any(row["status"] == "ok" for row in rows.values()):
            continue
        known = next(row for row in rows.values() if row["status"] == "ok")
        where, size = known["environment"], known["parameters"]
        blocks = " and ".join(f"{count} in `{path}`" for path, count in size["blocks"].items())
        yield (
            f"{one.title}: {size['parameters'] / 1e9:.2f} billion parameters, blocks: {blocks}."
            f" {where['device']}, {where['cores']} cores, torch {where['torch']}, Python {where['python']}."
        )
        yield ""
        yield table(head, [_eager(rows, one), *(_row(rows, name, one) for name in one.ways)])
        yield ""
        for job, row in rows.items():
            if row["status"] != "ok":
                yield f"- `{job}`: {row['status']}."
        yield ""


def _eager(rows: Json, one: Model) -> list[str]:
    turn = rows.get("turns", _MISSING)
    apart = next(row["eager"] for row in rows.values() if row["status"] == "ok")
    times = [_spread(turn, "eager"), _of_first(turn, "eager", one.ways[0]), _busy(turn, "eager")]
    return ["eager", "", "", "", *times, "", "", "", *_difference(apart)]


def _row(rows: Json, name: str, one: Model) -> list[str]:
    turn = rows.get("turns", _MISSING)
    whole = rows.get(f"cold: {one.ways[0]}", turn)
    cold = rows.get(f"cold: {name}", _MISSING if name in one.warm else turn)
    again = rows.get(f"second: {name}", turn if name == one.ways[0] and cold is not turn else _MISSING)
    own = cold.get(name) or turn.get(name)
    if own is None or "error" in own:
        return [name, own["error"] if own else cold["status"], *[""] * 10]
    first, both = cold["status"] == "ok", whole["status"] == cold["status"] == "ok"
    return [
        f"{name}: `{'; '.join(own['lines'])}`",
        f"{own['cold']:.1f}" if first else "",
        f"{whole[one.ways[0]]['cold'] / own['cold']:.1f}x" if both else "",
        f"{again[name]['cold']:.1f}" if name in again else "",
        _spread(turn, name),
        _of_first(turn, name, one.ways[0]),
        _busy(turn, name),
        str(own["graphs"]),
        str(own["recompiles"]) if first else "",
        f"{own['memory'] / 1e9:.1f}" if own["memory"] else "",
        *_difference(own["apart"]),
    ]


def _busy(turn: Json, name: str) -> str:
    known = turn.get("busy", {}).get(name)
    return f"{1e3 * known:.4g}" if known else ""


def _times(turn: Json, name: str) -> list[float]:
    return [1e3 * seconds for seconds in turn["turns"][name]] if turn["status"] == "ok" else []


def _spread(turn: Json, name: str) -> str:
    times = _times(turn, name)
    if not times:
        return ""
    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    return f"{median:.4g} [{low:.4g}-{high:.4g}]"


def _of_first(turn: Json, name: str, first: str) -> str:
    own, other = _times(turn, name), _times(turn, first)
    return f"{statistics.median(own) / statistics.median(other):.2f}" if own and other else ""


def _difference(apart: Json) -> list[str]:
    gradients = apart["gradients"]
    return [f"{apart['mae']:.2g} of {apart['mean']:.2g}", "" if gradients is None else f"{gradients:.2g}"]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    calls = parser.add_subparsers(dest="call", required=True)
    measuring = calls.add_parser("measure")
    measuring.add_argument("out", type=Path)
    measuring.add_argument("--nanovlm", type=Path, required=True)
    measuring.add_argument("--seconds", type=float, default=1800.0)
    measuring.add_argument("--models", nargs="+", default=[one.name for one in MODELS])
    measuring.add_argument("--short", action="store_true", help="fewer processes")
    single = calls.add_parser("one")
    single.add_argument("model", choices=[one.name for one in MODELS])
    single.add_argument("ways", nargs="+")
    single.add_argument("--turns", action="store_true")
    single.add_argument("--caches", type=Path, help="a folder with one for each way")
    reading = calls.add_parser("page")
    reading.add_argument("results", type=Path, nargs="+", help="of a model that is in several, the last counts")
    reading.add_argument("--into", type=Path)
    options = parser.parse_args()
    if options.call == "measure":
        measure(options.out, options.nanovlm.resolve(), options.seconds, options.models, options.short)
    elif options.call == "one":
        one = next(one for one in MODELS if one.name == options.model)
        told = first(one, options.ways, options.turns, options.caches)
        print(json.dumps(told), flush=True)
        os._exit(0)  # what the compiler has left behind is not waited for
    else:
        from tables import put

        put(
            options.into,
            "regional",
            page({k: v for f in options.results for k, v in json.loads(f.read_bytes()).items()}),
        )


if __name__ == "__main__":
    main()
