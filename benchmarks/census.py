"""Count what classes of the zoo cost as they are, and what settings of PyTorch alone change; run by ``settings.py``.

    PY census.py FOLDER NAME...        # PY: of the environment with the packages; FOLDER/NAME.json is written

One forked process for each class, of one that has compiled something before: what every process would do once more,
whatever the model is, is done once. In it the class is built afresh and called three times for each of: eager, compiled
as it is, compiled with the settings. The backend is ``eager``; graphs, breaks and recompiles are counted as the harness
counts them. Outputs are compared with those of eager, in order, as numbers.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.append(str(Path(__file__).resolve().parent))
import torch
import zoo
import zoo_fourth
import zoo_third
import zoo_transformers
import zoo_unseen
import zoo_wild2

from patcher.harness.listener import Listener, described, listening

Json = dict[str, Any]
SETTINGS = ("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "allow_rnn")
RUNS: dict[str, tuple[str, ...]] = {"plain": (), "set": SETTINGS}
CPU_SECONDS = 150


def seed() -> None:
    torch.manual_seed(5)
    random.seed(5)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(5)


def made(name: str) -> tuple[Any, list[tuple[Any, Any]]]:
    """The model and its calls, as arguments and keywords."""
    homes = [
        home for home in (zoo, zoo_wild2, zoo_third, zoo_fourth, zoo_unseen, zoo_transformers) if name in home.CLASSES
    ]
    build, calls = homes[0].case(name)
    seed()
    model = build()
    seed()
    return model, [spread(call) for call in calls()]


def spread(call: Any) -> tuple[Any, Any]:
    if isinstance(call, dict):
        return (), call
    named = len(call) == 2 and isinstance(call[1], dict) and isinstance(call[0], (tuple, list))
    return (call[0], call[1]) if named else (call, {})


def numbers(output: Any) -> list[Any]:
    """All tensors and numbers of an output, as tensors."""
    leaves: Iterable[Any] = torch.utils._pytree.tree_leaves(output)
    found: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            found.append(leaf.detach().clone())
        elif isinstance(leaf, (bool, int, float)):
            found.append(torch.tensor(float(leaf), dtype=torch.float64))
        elif hasattr(leaf, "__dataclass_fields__"):
            found += numbers([getattr(leaf, field) for field in leaf.__dataclass_fields__])
    return found


def apart(old: list[Any], new: list[Any]) -> float | str:
    """The largest difference, relative to the largest value of its tensor; or in words."""
    if [(t.shape, t.dtype) for t in old] != [(t.shape, t.dtype) for t in new]:
        return "other shapes or dtypes"
    worst = 0.0
    for one, other in zip(old, new, strict=True):
        if torch.equal(one, other):
            continue
        a, b = (torch.view_as_real(t) if t.is_complex() else t.double() for t in (one, other))
        if not torch.equal(a.isfinite(), b.isfinite()):
            return "not finite in other places"
        a, b = a[a.isfinite()], b[b.isfinite()]
        if len(a):
            worst = max(worst, float((a - b).abs().max() / a.abs().max().clamp_min(1e-9)))
    return worst


def compiled(name: str, settings: Iterable[str], eager: list[list[Any]], options: Json | None = None) -> Json:
    """What three calls cost, with ``options`` of ``torch.compile``, and how far outputs are from eager ones."""
    torch._dynamo.reset()
    changed = dict.fromkeys(settings, True)
    listener = Listener(lambda path: path.rpartition("site-packages/")[2] or path)
    listener.count_graphs()
    rows: list[Json] = []
    outputs: list[float | str] = []
    error = ""
    with listening(listener, False), torch._dynamo.config.patch(**changed) if changed else nullcontext():
        model, calls = made(name)
        runner = torch.compile(model, **(options or {"backend": "eager"}))
        for number, (args, kwargs) in enumerate(calls):
            before = listener.counts()
            seed()
            try:
                outputs.append(apart(eager[number], numbers(runner(*args, **kwargs))))
            except Exception as raised:  # that is the result
                error = error or f"{type(raised).__name__}: {str(raised).strip().splitlines()[0][:300]}"
            after = listener.counts()
            rows.append({key: after[key] - before[key] for key in after})
    return {"calls": rows, "outputs": outputs, "error": error, **described(listener)}


def one(name: str) -> Json:
    eager = []
    model, calls = made(name)
    for args, kwargs in calls:
        seed()
        eager.append(numbers(model(*args, **kwargs)))
    return {run: compiled(name, settings, eager) for run, settings in RUNS.items()}


def warm_up() -> None:
    """Have Dynamo do what it does once: imports, tables, the first dynamic shapes, the first break."""

    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            y = self.layer(x)
            return y if y.sum() > 0 else y + 1

    with listening(Listener(str), False):
        runner = torch.compile(Small(), backend="eager")
        for rows in (2, 3, 5):
            runner(torch.ones(rows, 2))
    torch._dynamo.reset()


def forked(name: str, file: Path, measure: Callable[[str], Json] = one) -> None:
    """One class in a process of its own, where ``measure`` makes what is written into the file."""
    start, part = time.monotonic(), file.with_suffix(".part")
    part.unlink(missing_ok=True)
    process = os.fork()
    if not process:
        log = os.open(file.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))
        try:
            told = measure(name)
        except BaseException as raised:
            last = traceback.extract_tb(raised.__traceback__)[-1]
            told = {"error": f"{type(raised).__name__}: {raised} ({last.filename}:{last.lineno})"}
        part.write_text(json.dumps(told, indent=1), encoding="utf-8")
        os._exit(0)
    _, status = os.waitpid(process, 0)
    told = json.loads(part.read_text(encoding="utf-8")) if part.is_file() else {"error": f"ended with {status}"}
    part.unlink(missing_ok=True)
    file.write_text(json.dumps({**told, "took": round(time.monotonic() - start, 1)}, indent=1), encoding="utf-8")


def main() -> None:
    torch.set_num_threads(1)
    for package in ("scipy.signal", "torchvision", "torchaudio"):  # what several classes import
        with suppress(ImportError, OSError):
            __import__(package)
    warm_up()
    for name in sys.argv[2:]:
        forked(name, Path(sys.argv[1], f"{name}.json"))
        print(name, flush=True)


if __name__ == "__main__":
    main()
