"""State that compiled code writes, of ten kinds: does ``reduce-overhead`` record CUDA graphs, as it is and patched?

    python benchmarks/graph_states.py patch FOLDER
    python benchmarks/graph_states.py measure FOLDER > RESULTS           (where there is a GPU; needs torch alone)
    python benchmarks/graph_states.py write RESULTS --document docs/results/caches.md

The kinds lie in benchmarks/states; each has a module and a loop that makes the state and calls it. ``marked``: as it
is, and every tensor that the loop makes by ``torch.zeros`` is marked with ``torch._dynamo.mark_static_address``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import logging
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

STATES = Path(__file__).resolve().parent / "states"
VARIANTS = ("as it is", "marked", "patched")
STEPS, ROUNDS = 200, 5
_SKIP = re.compile(r"(?:skipping|disabling) cudagraphs?(?: for backward)? due to ([^\n.]*)", re.IGNORECASE)


def patch(folder: Path) -> None:
    """Write the kinds as they are and as a default run makes them."""
    for name in ("original", "patched"):
        shutil.copytree(STATES, folder / name, dirs_exist_ok=True)
    shutil.copy(__file__, folder)
    program = Path(__file__).resolve().parent.parent / "fix_compile.py"
    subprocess.run([sys.executable, str(program), "--yes", "--no-backup", str(folder / "patched")], check=False)


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Run each kind in each variant; a row says what was skipped, and the milliseconds of a step."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    yield {"torch": torch.__version__, "device": torch.cuda.get_device_name() if device == "cuda" else "CPU"}
    for path in sorted((folder / "original").glob("*.py")):
        expected = None
        for variant in VARIANTS:
            module = _module(folder / ("patched" if variant == "patched" else "original") / path.name)
            row: dict[str, Any] = {"kind": path.stem, "variant": variant, "told": (module.__doc__ or "").strip()}
            torch.manual_seed(0)
            net = module.Net().to(device)
            xs = list(torch.randn(STEPS, 4, 64, device=device))
            with torch.no_grad():
                expected = module.loop(net, xs)[-1] if variant == "as it is" else expected
                net.load_state_dict(_fresh(module))
                row.update(_run(torch, module, net.to(device), xs, expected, variant))
            yield row


def _fresh(module: ModuleType) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    return dict(module.Net().state_dict())


def _run(torch: Any, module: ModuleType, net: Any, xs: list[Any], expected: Any, variant: str) -> dict[str, Any]:
    zeros = torch.zeros

    def marked(*args: Any, **more: Any) -> Any:
        made = zeros(*args, **more)
        torch._dynamo.mark_static_address(made)
        return made

    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    net.compile(mode="reduce-overhead")
    around = mock.patch.object(torch, "zeros", marked) if variant == "marked" else contextlib.nullcontext()
    started = time.perf_counter()
    try:
        with around, _reasons(torch) as reasons:
            first = module.loop(net, xs)[-1]
            cold = time.perf_counter() - started
            seconds = [_seconds(torch, lambda: module.loop(net, xs)) for _ in range(ROUNDS)]
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160]}"}
    return {
        "skips": counters["inductor"]["cudagraph_skips"],
        "reasons": sorted(set(reasons)),
        "breaks": sum(counters["graph_break"].values()),
        "graphs": counters["stats"]["unique_graphs"],
        "cold_s": round(cold, 2),
        "step_ms": round(1000 * statistics.median(seconds) / STEPS, 4),
        "spread": [round(1000 * s / STEPS, 4) for s in (min(seconds), max(seconds))],
        "off": float((first - expected).abs().max()),
    }


def _seconds(torch: Any, act: Callable[[], Any]) -> float:
    started = time.perf_counter()
    act()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


@contextlib.contextmanager
def _reasons(torch: Any) -> Iterator[list[str]]:
    """Why graphs are skipped, in PyTorch's words."""
    found: list[str] = []

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.extend(match[1].strip() for match in _SKIP.finditer(record.getMessage()))

    torch._logging.set_logs(cudagraphs=True, perf_hints=True)
    heard = Heard()
    loggers = [logging.getLogger(n) for n in logging.root.manager.loggerDict if n.startswith("torch")]
    for logger in loggers:
        logger.addHandler(heard)
    try:
        yield found
    finally:
        for logger in loggers:
            logger.removeHandler(heard)
        torch._logging.set_logs()


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def written(results: Path, document: Path | None) -> None:
    """Put the rows into a document."""
    from tables import put, table

    head, *rows = [
        json.loads(line) for line in results.read_text(encoding="utf-8").splitlines() if line.startswith("{")
    ]
    cells = [
        (
            row["told"].rstrip(".") + f" (`{row['kind']}`)",
            row["variant"],
            f"raises: {row['error'].partition('. Stack trace')[0]}" if "error" in row else row["skips"],
            "; ".join(row.get("reasons", ())),
            row.get("breaks", ""),
            row.get("graphs", ""),
            f"{row['step_ms']:.3f} ({row['spread'][0]:.3f} to {row['spread'][1]:.3f})" if "step_ms" in row else "",
            f"{row['off']:.1e}" if "off" in row else "",
        )
        for row in rows
    ]
    columns = ("state", "variant", "skips", "why, in PyTorch's words", "breaks", "graphs", "ms a step", "off eager")
    put(document, "states", f"torch {head['torch']}, {head['device']}.\n\n{table(columns, cells)}")


def main() -> None:
    """Patch, measure or write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("do", choices=("patch", "measure", "write"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--document", type=Path)
    asked = parser.parse_args()
    if asked.do == "patch":
        patch(asked.path)
    elif asked.do == "write":
        written(asked.path, asked.document)
    else:
        for row in measure(asked.path):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
