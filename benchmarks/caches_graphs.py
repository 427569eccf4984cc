"""The caches of tests/caches with CUDA graphs: as they are and as a default run makes them, in ``reduce-overhead``.

    python benchmarks/caches_graphs.py prepare FOLDER
    python FOLDER/caches_graphs.py measure FOLDER > RESULTS        (on a GPU; needs torch alone)
    python benchmarks/caches_graphs.py write RESULTS --document docs/results/caches.md

Each style runs its three rounds twice, and what is hard for it (overflow, two sequences in turn, another batch) where
its file has that, eagerly and compiled, in a process of its own. What a call gives is cloned, as a loop has to.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

STYLES = Path(__file__).resolve().parent.parent / "tests" / "caches"
TREES = {"original": "as it is", "patched": "patched"}
HEAD = ("style", "form", "CUDA graphs skipped", "why, in PyTorch's words", "furthest output", "hard calls")
_SKIP = re.compile(r"(?:skipping|disabling) cudagraphs?(?: for \w+)? due to ([^\n.(]*)", re.IGNORECASE)


def prepare(folder: Path) -> None:
    """Write both trees, and this program."""
    for tree in TREES:
        shutil.copytree(STYLES, folder / tree, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(__file__, folder)
    program = STYLES.parent.parent / "fix_compile.py"
    command = [sys.executable, str(program), "--yes", "--no-backup", "--quiet", "--all", str(folder / "patched")]
    subprocess.run(command, check=False)


def one(path: Path) -> dict[str, Any]:
    """What comes of one file."""
    import torch

    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plain, model = _built(module), _compiled(_built(module))
    expected = [_tried(call, plain) for call in module.rounds()]
    with _heard() as reasons:
        found = [[_tried(call, model) for call in module.rounds()] for _ in range(2)][-1]
    told: dict[str, Any] = {"reasons": dict(Counter(reasons)), "off": _off(expected, found)}
    if hasattr(module, "harder"):
        told["hard"] = []
        for call in module.harder():
            pair = [_tried(call, _built(module)), _tried(call, _compiled(_built(module)))]
            if any(isinstance(found, str) and "device-side" in found for found in pair):  # nothing runs after that
                told["hard"].append("a device-side assertion, the last call")
                break
            told["hard"].append(_off(pair[:1], pair[1:]))
    return told


def _built(module: Any) -> Any:
    import torch

    torch.manual_seed(0)
    return module.build()


def _compiled(model: Any) -> Any:
    import torch
    from torch.utils._pytree import tree_map_only

    inner = torch.compile(model.forward, mode="reduce-overhead")
    model.forward = lambda *a, **k: tree_map_only(torch.Tensor, torch.clone, inner(*a, **k))
    return model


def _tried(call: Callable[[Any], Any], model: Any) -> Any:
    import torch

    try:
        with torch.no_grad():
            return call(model)
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        said = next((line.strip() for line in lines if "got " in line and "Error(" in line), lines[0])
        return f"{type(error).__name__}: {said.partition('. Stack')[0][:120]}"


def _off(expected: list[Any], found: list[Any]) -> str:
    """How far the furthest number is off, or what was raised instead of it."""
    import torch
    from torch.utils._pytree import tree_leaves

    raised = [(isinstance(a, str), isinstance(b, str), b) for a, b in zip(expected, found, strict=True)]
    if other := next((b for was, now, b in raised if now and not was), ""):
        return f"raises {other}"
    if any(was and not now for was, now, _ in raised):
        return "does not raise"
    pairs = [
        (p, q)
        for a, b in zip(expected, found, strict=True)
        if not isinstance(a, str)
        for p, q in zip(tree_leaves(a), tree_leaves(b), strict=True)
        if isinstance(p, torch.Tensor) and p.numel()
    ]
    return f"{max((float((p.float() - q.float()).abs().max()) for p, q in pairs), default=0.0):.1e}"


def _heard() -> Any:
    """Why graphs are skipped, each time."""
    import contextlib
    import logging

    import torch

    @contextlib.contextmanager
    def hearing() -> Iterator[list[str]]:
        found: list[str] = []

        class Heard(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                found.extend(match[1].strip() for match in _SKIP.finditer(record.getMessage()))

        torch._logging.set_logs(perf_hints=True)  # with those of CUDA graphs, torch 2.11 fails in its own log code
        heard = Heard()
        for logger in [logging.getLogger(n) for n in list(logging.root.manager.loggerDict) if n.startswith("torch")]:
            logger.addHandler(heard)
        yield found
        torch._logging.set_logs()

    return hearing()


def measure(folder: Path, jobs: int) -> Iterator[dict[str, Any]]:
    """A row for each style and tree."""
    import torch

    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU: no CUDA graphs"
    yield {"torch": torch.__version__, "device": where}
    asked = [(tree, path) for tree in TREES for path in sorted((folder / tree).glob("*.py"))]

    def call(tree: str, path: Path) -> dict[str, Any]:
        command = [sys.executable, __file__, "one", str(path)]
        # a cache of its own: on torch 2.11, a graph that is found there brings its skips along
        own = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor" / tree / path.stem)}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False, env=own)
        except subprocess.TimeoutExpired:
            return {"style": path.stem, "tree": tree, "failed": "longer than 240 s"}
        lines = (done.stderr if done.returncode else done.stdout).strip().splitlines() or ["it says nothing"]
        if done.returncode < 0:
            return {"style": path.stem, "tree": tree, "failed": f"ends by {signal.Signals(-done.returncode).name}"}
        told = {"failed": lines[-1][:160]} if done.returncode else json.loads(lines[-1])
        return {"style": path.stem, "tree": tree, **told}

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda pair: call(*pair), asked)


def written(results: Path, document: Path | None) -> None:
    """Put the rows into a document, style by style."""
    from tables import put, table

    head, *rows = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines() if line[:1] == "{"]
    ran = [{r["style"] for r in rows if r["tree"] == tree and r.get("off", "r")[0] != "r"} for tree in TREES]
    both = ran[0] & ran[1]
    cells = [
        (
            f"`{row['style']}`",
            TREES[row["tree"]],
            sum(row.get("reasons", {}).values()),
            "; ".join(row.get("reasons", ())),
            row.get("off", row.get("failed", "")),
            "; ".join(row.get("hard", ())),
        )
        for row in sorted(rows, key=lambda row: (row["style"], row["tree"]))
    ]
    every = len({row["style"] for row in rows})
    told = f"torch {head['torch']}, {head['device']}; {len(both)} of {every} styles ran in both forms."
    put(document, "caches on a GPU", f"{told}\n\n{table(HEAD, cells)}")


def main() -> None:
    """Prepare, measure or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("prepare", "measure", "write", "one"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--document", type=Path)
    parser.add_argument("--jobs", type=int, default=12)
    asked = parser.parse_args()
    if asked.do == "prepare":
        prepare(asked.path)
    elif asked.do == "write":
        written(asked.path, asked.document)
    elif asked.do == "one":
        print("\n" + json.dumps(one(asked.path)))
    else:
        for row in measure(asked.path.resolve(), asked.jobs):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
