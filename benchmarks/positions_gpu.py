"""TimesFM 2.5 of released size on a GPU: its loop makes the caches of each request; as it is, patched, kept.

    python benchmarks/positions_gpu.py prepare FOLDER --package PACKAGE
    python FOLDER/positions_gpu.py measure FOLDER > RESULTS        (on a GPU; needs torch alone)
    python benchmarks/positions_gpu.py write RESULTS --document docs/results/caches.md

PACKAGE holds ``timesfm`` (``pip download --no-deps timesfm==3.0.2``, unpacked). Weights are random. A request is a
prefill of 512 values and three steps. Five requests of two batch sizes run three times, and are compared with eager
ones; then ten of batch 8 are timed. Each source has a process and a cache of Inductor of its own, which a first run,
not timed, has filled: on torch 2.11 a graph that is found there brings its skips along.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: Folder and what it is called: as it is; by a default run.
TREES = {"original": "as it is", "patched": "patched"}
MODES = ("default", "reduce-overhead")
REQUESTS = ((8, 512), (8, 512), (1, 512), (8, 512), (1, 512))
STEPS, ROUNDS, TIMED = 3, 3, 10
HEAD = (
    "source",
    "mode",
    "graphs",
    "CUDA graphs skipped",
    "recorded in round 1, 2, 3",
    "ms a request",
    "eager ms",
    "furthest output",
)
_SKIP = re.compile(r"(?:skipping|disabling) cudagraphs?(?: for \w+)? due to ([^\n.(]*)", re.IGNORECASE)


def prepare(folder: Path, package: Path) -> None:
    """Write the sources, and this program."""
    program = Path(__file__).resolve().parent.parent / "fix_compile.py"
    for tree in TREES:
        there = folder / tree / "timesfm"
        shutil.copytree(package / "timesfm", there, ignore=shutil.ignore_patterns("__pycache__", "flax"))
        if tree == "patched":
            command = [sys.executable, str(program), "--yes", "--no-backup", "--quiet", str(there)]
            subprocess.run(command, check=False)
    for name in ("positions.py", Path(__file__).name):
        shutil.copy(Path(__file__).resolve().parent / name, folder)


def measure(folder: Path, trees: str) -> None:
    """Print a row for each source of ``trees`` and mode."""
    named = trees.split(",")
    asked = [(tree, mode) for tree in named for mode in MODES]
    for running in [_start(folder, *pair) for pair in asked]:
        running.communicate()
    for tree, mode in asked:
        out, errors = _start(folder, tree, mode).communicate()
        rows = [line for line in out.splitlines() if line[:1] == "{"]
        print(rows[-1] if rows else json.dumps({"tree": tree, "mode": mode, "raises": errors[-400:]}), flush=True)


def _start(folder: Path, tree: str, mode: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor" / f"{tree}-{mode}")}
    command = [sys.executable, __file__, "one", str(folder), "--tree", tree, "--mode", mode]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def one(folder: Path, tree: str, mode: str) -> dict[str, Any]:
    """What comes of one source in one mode."""
    sys.path.insert(0, str(folder / tree))
    spec = importlib.util.spec_from_file_location("positions", folder / "positions.py")
    assert spec is not None and spec.loader is not None
    positions = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(positions)
    positions.stubs()
    import torch
    from timesfm.timesfm_2p5.timesfm_2p5_torch import TimesFM_2p5_200M_torch_module
    from torch._dynamo.utils import counters
    from torch._inductor import cudagraph_trees

    torch.manual_seed(0)
    net = TimesFM_2p5_200M_torch_module().cuda().eval()
    skips: list[str] = []
    recorded: list[int] = [0]
    _listen(skips)
    start = cudagraph_trees.CUDAGraphNode.__init__

    def counted(*args: Any, **more: Any) -> None:
        recorded[-1] += 1
        start(*args, **more)

    cudagraph_trees.CUDAGraphNode.__init__ = counted

    def request(rows: int, length: int) -> list[Any]:
        generator = torch.Generator().manual_seed(1000 * rows + length)
        series = torch.randn(rows, length, generator=generator).cumsum(1).cuda()
        hidden = torch.zeros(rows, length, dtype=torch.bool, device="cuda")
        hidden[0, :40] = True
        return [part.clone() for part in net.decode(128 * (STEPS + 1), series, hidden)]

    def timed() -> str:
        spent = []
        for _ in range(TIMED):
            torch.cuda.synchronize()
            began = time.perf_counter()
            request(*REQUESTS[0])
            torch.cuda.synchronize()
            spent.append(1000 * (time.perf_counter() - began))
        return f"{statistics.median(spent):.1f} ({min(spent):.1f} to {max(spent):.1f})"

    told = {"tree": tree, "mode": mode, "torch": torch.__version__, "device": torch.cuda.get_device_name()}
    with torch.no_grad():
        expected = [request(*r) for r in REQUESTS]
        told["eager"] = timed()
        net.forward = torch.compile(net.forward, mode=mode)
        off = 0.0
        try:
            for _ in range(ROUNDS):
                found = [request(*r) for r in REQUESTS]
                pairs = [(a, b) for x, y in zip(expected, found, strict=True) for a, b in zip(x, y, strict=True)]
                off = max(off, *(float((a - b).abs().max()) for a, b in pairs))
                recorded.append(0)
            told["ms"] = timed()
        except RuntimeError as error:
            told["raises"] = str(error).strip().splitlines()[0].partition(". Stack")[0][:160]
    largest = max(float(part.abs().max()) for part in expected[0])
    told.update(graphs=counters["stats"]["unique_graphs"], skips=skips, off=f"{off:.1e} of {largest:.0f}")
    return {**told, "recorded": recorded[:ROUNDS]}


def _listen(skips: list[str]) -> None:
    """Put why graphs are skipped into ``skips``, each time."""
    import torch

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            skips.extend(match[1].strip() for match in _SKIP.finditer(record.getMessage()))

    torch._logging.set_logs(perf_hints=True)
    heard = Heard()
    for logger in [logging.getLogger(n) for n in list(logging.root.manager.loggerDict) if n.startswith("torch")]:
        logger.addHandler(heard)


def written(results: Path, document: Path | None) -> None:
    """Put the rows into a document."""
    from tables import put, table

    rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines() if line[:1] == "{"]
    cells = [
        (TREES[r["tree"]], r["mode"], "", "", "", f"raises: {r['raises']}", r.get("eager", ""), "")
        if "raises" in r
        else (
            TREES[r["tree"]],
            r["mode"],
            r["graphs"],
            f"{len(r['skips'])}{': ' if r['skips'] else ''}{', '.join(sorted(set(r['skips'])))}",
            ", ".join(map(str, r["recorded"])),
            r["ms"],
            r["eager"],
            r["off"],
        )
        for r in rows
    ]
    put(document, "positions on a GPU", f"torch {rows[0]['torch']}, {rows[0]['device']}.\n\n{table(HEAD, cells)}")


def main() -> None:
    """Prepare, measure or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("prepare", "measure", "write", "one"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--package", type=Path)
    parser.add_argument("--document", type=Path)
    parser.add_argument("--trees", default=",".join(TREES))
    parser.add_argument("--tree", help=argparse.SUPPRESS)
    parser.add_argument("--mode", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.do == "prepare":
        prepare(asked.path, asked.package)
    elif asked.do == "write":
        written(asked.path, asked.document)
    elif asked.do == "one":
        print("\n" + json.dumps(one(asked.path, asked.tree, asked.mode)))
    else:
        measure(asked.path.resolve(), asked.trees)


if __name__ == "__main__":
    main()
