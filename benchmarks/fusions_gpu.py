"""The models of fusions_models.py on a GPU: original against patched, eagerly and compiled, times and differences.

    python benchmarks/fusions_gpu.py prepare FOLDER --sources CHECKOUTS
    python FOLDER/fusions_gpu.py measure FOLDER [--sources CHECKOUTS] [--only NAME ...] > RESULTS
    python benchmarks/fusions_gpu.py write RESULTS --document docs/results/fusions-gpu.md

``prepare`` writes the files of each model's classes as FC801 to FC807 make them, and this program with what it needs.
``measure`` wants torch and the packages of the models, in the versions that were patched; a model that cannot be had
is a row with the reason. Each model has a process of its own, twice: several at a time to fill the compiler's cache,
and then alone. Times are medians of alternating turns. Batches are 16 times those on a CPU where a model is of text;
TF32 is off.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "cases")]
os.environ.setdefault("CASE_DEVICE", "cpu")  # models are built there, and moved
import fusions_models as models  # noqa: E402

ROWS = dict.fromkeys(("Llama", "Gemma", "Qwen3", "GPT-2", "T5", "ViT", "timesfm"), 16) | {"Toto": 4}
MODES, WHAT = ("eager", "compiled"), ("forward", "with backward")
HEAD = ("model", "dtype", *(f"{mode}, {what}, ms" for mode in MODES for what in WHAT), "eager to compiled")


def prepare(folder: Path) -> None:
    """Write the patched files by module, and a plan that says whose they are."""
    (folder / "patched").mkdir(parents=True, exist_ok=True)
    plan: dict[str, list[str]] = {}
    for name, build in models.MODELS.items():
        try:
            made, _ = build()
        except ImportError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        modules = sorted({type(m).__module__ for m in made.modules()})
        files = {m: Path(str(sys.modules[m].__file__)) for m in modules if m.partition(".")[0] not in models._OF_TORCH}
        _, texts = models._patched(files)
        plan[name] = [m for m, file in files.items() if file in texts]
        for module in plan[name]:
            (folder / "patched" / f"{module}.py").write_text(texts[files[module]], encoding="utf-8")
    (folder / "plan.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")
    for needed in ("fusions_gpu.py", "fusions_models.py", "cases/_nanovlm.py", "cases/_settings.py"):
        shutil.copy(HERE / needed, folder)


def one(name: str, folder: Path, warm: bool, turns: int) -> dict[str, Any]:
    """What one model gives, as plain data; with ``warm``, only enough to compile everything."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    changed = json.loads((folder / "plan.json").read_text(encoding="utf-8"))[name]
    texts = {m: (folder / "patched" / f"{m}.py").read_text(encoding="utf-8") for m in changed}
    pair: list[Any] = []
    for swapped in ({}, texts):
        torch.manual_seed(0)
        made, inputs = models.MODELS[name]()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.02)
        pair.append(models._swapped(made, swapped).eval().to(device))
    told: dict[str, Any] = {"rewritten": changed}
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(1)
        pair = [model.to(dtype) for model in pair]
        given = {key: _wide(value, ROWS.get(name, 1)) for key, value in inputs(dtype).items()}
        row: dict[str, Any] = {}
        context: Callable[[], Any] = contextlib.nullcontext
        if not models._runs(pair[0], given):  # it mixes dtypes, and is meant for autocast
            row["autocast"] = True
            pair, given = [model.float() for model in pair], models._cast(given, torch.float32)
            context = lambda: torch.autocast(device, torch.bfloat16)  # noqa: E731
        torch._dynamo.reset()
        _measured(row, pair, given, context, 0 if warm else turns)
        told[str(dtype).removeprefix("torch.")] = row
    return told


def _measured(row: dict[str, Any], pair: list[Any], given: Any, context: Callable[[], Any], turns: int) -> None:
    import torch

    def forward(model: Any) -> Any:
        with torch.no_grad(), context():
            return models._first(model(**given))

    def both(model: Any) -> None:
        with context():
            models._first(model(**given)).float().square().mean().backward()
        for parameter in model.parameters():
            parameter.grad = None

    forms = {"eager": pair, "compiled": [torch.compile(model) for model in pair]}
    outputs = {mode: [forward(model) for model in form] for mode, form in forms.items()}
    for form in forms.values():
        for model in form:
            both(model)
    if not turns:
        return
    row["eager to compiled"] = [models._mean(*two) for two in zip(*outputs.values(), strict=True)]
    for mode, form in forms.items():
        row[f"changed, {mode}"] = models._mean(*outputs[mode])
        for what, run in zip(WHAT, (forward, both), strict=True):
            times: list[list[float]] = [[], []]
            for turn in range(turns + 2):
                for number in (0, 1) if turn % 2 else (1, 0):
                    seconds = _seconds(lambda: run(form[number]))  # noqa: B023
                    times[number] += [seconds] if turn > 1 else []
            row[f"{mode}, {what}, ms"] = [round(1000 * statistics.median(t), 3) for t in times]


def _wide(value: Any, times: int) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    wider = value.repeat(times, *[1] * (value.dim() - 1)) if times > 1 else value
    return wider.to("cuda" if torch.cuda.is_available() else "cpu")


def _seconds(run: Callable[[], object]) -> float:
    import torch

    settle = torch.cuda.synchronize if torch.cuda.is_available() else (lambda: None)
    settle()
    start = time.perf_counter()
    run()
    settle()
    return time.perf_counter() - start


def measure(folder: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each model; what is not done within the seconds is one that says so."""
    import torch

    end = time.monotonic() + options.seconds
    os.environ.update(TORCHINDUCTOR_CACHE_DIR=tempfile.mkdtemp(prefix="fusions-"), TORCHINDUCTOR_COMPILE_THREADS="4")
    yield {"on": [f"torch {torch.__version__}", torch.cuda.get_device_name() if torch.cuda.is_available() else "a CPU"]}
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    names = [name for name, changed in plan.items() if changed and (not options.only or name in options.only)]

    def call(name: str, limit: float, *more: str) -> dict[str, Any]:
        command = [
            sys.executable,
            __file__,
            "measure",
            str(folder),
            "--one",
            name,
            "--turns",
            str(options.turns),
            *more,
        ]
        command += ["--sources", str(options.sources)] if options.sources else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(limit, 1), check=False)
        except subprocess.TimeoutExpired:
            return {"skipped": "no time left"}
        said = (done.stderr if done.returncode else done.stdout).strip().splitlines() or ["it says nothing"]
        return {"skipped": said[-1][:200]} if done.returncode else dict(json.loads(said[-1]))

    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        first = dict(zip(names, pool.map(lambda n: call(n, 0.6 * options.seconds, "--warm"), names), strict=True))
    for name, told in first.items():
        yield {name: told if "skipped" in told else call(name, end - time.monotonic())}


def written(results: Path, document: Path | None) -> None:
    """Put the rows into the page, before by after."""
    from tables import put, table

    found: dict[str, Any] = {}
    for line in results.read_text(encoding="utf-8").splitlines():
        found |= json.loads(line)
    cells: list[list[object]] = []
    for name, told in ((n, t) for n, t in found.items() if isinstance(t, dict)):
        if "skipped" in told:
            cells.append([name, f"not run: {told['skipped'].partition(' (/')[0]}", *[""] * (len(HEAD) - 2)])
        for dtype, row in ((d, told[d]) for d in ("float32", "bfloat16") if d in told):
            pairs = [row[key] for key in HEAD[2:]]
            autocast = " (autocast)" if row.get("autocast") else ""
            shown = [f"{a:.3g} to {b:.3g}" for a, b in pairs]
            cells.append([name, dtype + autocast, *shown])
    put(document, "on a GPU", f"{', '.join(found['on'])}.\n\n{table(HEAD, cells)}")


def main() -> None:
    """Prepare, measure or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("prepare", "measure", "write"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--sources", type=Path, help="where the checkouts of nanoVLM and sd-scripts are")
    parser.add_argument("--document", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--turns", type=int, default=11)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.sources is not None:
        sys.path[:0] = [str(options.sources.resolve() / name) for name in ("nanoVLM", "sd-scripts")]
    if options.one:
        print("\n" + json.dumps(one(options.one, options.path, options.warm, options.turns)))
    elif options.do == "prepare":
        prepare(options.path)
    elif options.do == "write":
        written(options.path, options.document)
    else:
        for row in measure(options.path.resolve(), options):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
