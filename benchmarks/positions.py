"""TimesFM 2.5, whose cache is written from a position on that is a tensor: as it is, and as a default run patches it.

    python benchmarks/positions.py FOLDER [--document docs/results/caches.md]

FOLDER holds the package ``timesfm``, unpacked (``pip download --no-deps timesfm==3.0.2``; of what it imports beside
torch and NumPy, nothing is used here). Its module is made small, with random weights, and decodes four requests: a
prefill and three steps each, batches of 2, 3, 1 and 2, two lengths. Both sources run in a process each, eagerly and
compiled (Dynamo's "eager" backend, and ``aot_eager``). The eager outputs have to be equal bit for bit, the compiled
ones within 1e-5, and a cache that is too small has to raise in both. Set OMP_NUM_THREADS=1: with more, products
on a CPU differ in their last bits from one process to the next.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
WIDTH, HEADS, LAYERS, PATCH, STEPS = 32, 4, 3, 32, 3
REQUESTS = ((2, 256), (3, 256), (1, 320), (2, 256))
TOLERANCE = 1e-5
HEAD = (
    "source",
    "backend",
    "breaks",
    "graphs",
    "recompiles",
    "limits hit",
    "frames given up",
    "launches in the last 4 calls",
    "outputs",
)


def stubs() -> None:
    """Stand in for what only loading weights needs."""
    for name in ("huggingface_hub", "safetensors", "safetensors.torch"):
        module = types.ModuleType(name)
        quiet = classmethod(lambda cls, **_: None)  # type: ignore[var-annotated]
        mixin = type("PyTorchModelHubMixin", (), {"__init_subclass__": quiet})
        module.__dict__.update(PyTorchModelHubMixin=mixin, hf_hub_download=None, load_file=None, save_file=None)
        sys.modules[name] = module


def model() -> Any:
    """The module, small, in eval mode: the same weights in every process."""
    import torch
    from timesfm.timesfm_2p5.timesfm_2p5_torch import TimesFM_2p5_200M_torch_module as Module

    wide: Any = Module.config
    stacked, new = wide.stacked_transformers, dataclasses.replace
    inner = new(stacked.transformer, model_dims=WIDTH, hidden_dims=WIDTH, num_heads=HEADS)
    Module.config = new(
        wide,
        tokenizer=new(wide.tokenizer, hidden_dims=WIDTH, output_dims=WIDTH),
        stacked_transformers=new(stacked, num_layers=LAYERS, transformer=inner),
        output_projection_point=new(wide.output_projection_point, input_dims=WIDTH, hidden_dims=WIDTH),
        output_projection_quantiles=new(wide.output_projection_quantiles, input_dims=WIDTH, hidden_dims=WIDTH),
    )
    torch.manual_seed(0)
    return Module().eval()


def decode(made: Any, rows: int, length: int) -> list[Any]:
    """One request through the module's own loop: forecasts of the prefill, their spread, and those of the steps."""
    import torch

    generator = torch.Generator().manual_seed(1000 * rows + length)
    series = torch.randn(rows, length, generator=generator).cumsum(1)
    hidden = torch.zeros(rows, length, dtype=torch.bool)
    hidden[0, :40] = True  # the first row begins later
    return list(made.decode(128 * (STEPS + 1), series, hidden))


def overflows(made: Any) -> str:
    """The error of a prefill for which the cache has no room; "" when there is none."""
    import torch
    from timesfm.torch.util import DecodeCache

    def cache() -> Any:
        counters = {name: torch.zeros(2, dtype=torch.int32) for name in ("next_index", "num_masked")}
        return DecodeCache(**counters, key=torch.zeros(2, 6, HEADS, 8), value=torch.zeros(2, 6, HEADS, 8))

    patches = torch.zeros(2, 8, PATCH)
    try:
        made.forward(patches, torch.zeros(2, 8, PATCH, dtype=torch.bool), [cache() for _ in range(LAYERS)])
    except RuntimeError as e:
        return type(e).__name__
    return ""


def child(folder: str, backend: str, target: str) -> None:
    """Run one source in one way; figures, outputs and the error of a full cache go to a file."""
    sys.path.insert(0, folder)
    stubs()
    import torch

    from patcher.harness.examples import count

    made = model()
    error = overflows(made)
    with torch.no_grad():
        eager = [decode(made, *request) for request in REQUESTS]
    # what the package's own `load_checkpoint` does is `model.forward = torch.compile(model.forward)`
    plain = made.forward

    def hook(caller: Any, chosen: Any) -> Any:
        made.forward = torch.compile(plain, backend=chosen)
        return made

    rounds = [lambda f, r=r: decode(f, *r) for r in REQUESTS]
    figures = count(made, rounds, hook=hook, backend=backend)
    made.forward = plain
    torch.save((eager, figures, error), target)


def patch(folder: Path) -> int:
    """A run with ``--unsafe`` over the package in ``folder``; how many findings it fixes."""
    from patcher.patching.runner import run
    from patcher.settings import Settings
    from rules import load_rules

    fixed = 0
    for result in run([str(folder / "timesfm")], tuple(load_rules()), Settings(unsafe=True), jobs=1):
        fixed += len(result.patch.fixed) if result.patch is not None else 0
        if result.changed:
            Path(result.path).write_bytes(result.after)
    return fixed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--document", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("given", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(str(options.folder), *options.given)
        return 0
    import torch

    from benchmarks.tables import put, table
    from patcher.harness.examples import equal

    rows, wrong = [], []
    with tempfile.TemporaryDirectory() as temporary:
        patched = Path(temporary) / "patched"
        shutil.copytree(options.folder, patched)
        fixed = patch(patched)
        first: Any = None
        for backend in ("eager", "aot_eager"):
            for name, folder in (("as it is", options.folder.resolve()), ("patched", patched)):
                target = str(Path(temporary) / "outcome.pt")
                command = [sys.executable, __file__, "--child", str(folder), backend, target]
                subprocess.run(command, cwd=ROOT, check=True)
                eager, f, error = torch.load(target, weights_only=False)
                first = first or (eager, error)
                compiled = list(f.outputs)
                differences = [
                    equal(first[0], eager, 0.0, f"{name}, eager"),
                    equal(eager, compiled, TOLERANCE, f"{name}, compiled"),
                    "" if error == first[1] == "RuntimeError" else f"{name}: a full cache raises {error or 'nothing'}",
                ]
                wrong += filter(None, differences)
                shown = "equal" if not any(differences) else "; ".join(filter(None, differences))
                counted = (f.breaks, f.graphs, f.recompiles, f.limit_hits, f.dropped_frames, f.launches)
                rows.append((name, backend, *counted, shown))
    told = f"torch {torch.__version__}; {fixed} findings fixed by a default run over `timesfm/`."
    put(options.document, "positions", f"{told}\n\n{table(HEAD, rows)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
