"""What leaving a function out of graphs (FC207) does to the time of a pass, with inductor.

    PY benchmarks/left_out.py [--into docs/results/settings.md]

PY is the Python of an environment with the packages of ``zoo.txt``. Each row runs in a process of its own, with one
thread: milliseconds of CPU time of a settled pass over three calls, the fastest of seven rounds, eager and compiled;
and CPU seconds of the first three passes, which compile. The functions are those that ``settings.py prove`` has kept.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import zoo
from tables import put, table

STRATEGY = "gpytorch.models.exact_prediction_strategies:DefaultPredictionStrategy.exact_prediction"
CHECKS, BETWEEN = "torchdiffeq._impl.misc:_check_inputs", "torchdiffeq._impl.solvers:FixedGridODESolver._linear_interp"
#: Class, settings of PyTorch, functions that are left out.
ROWS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("gpytorch.ExactGP", (), ()),
    ("gpytorch.ExactGP", (), (STRATEGY,)),
    ("torchdiffeq.odeint", (), ()),
    ("torchdiffeq.odeint", ("nested_graph_breaks",), ()),
    ("torchdiffeq.odeint", ("nested_graph_breaks",), (CHECKS, BETWEEN)),
)
ROUNDS, PASSES = 7, 5


def fastest(run: Callable[[], object]) -> float:
    """Milliseconds of CPU time."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(PASSES):
            run()
        best = min(best, (time.process_time() - start) / PASSES * 1e3)
    return best


def measured(number: int) -> tuple[float, float, float]:
    """Of one row: eager, compiled, and seconds until it is compiled."""
    import torch

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(1)
    name, settings, functions = ROWS[number]
    for setting in settings:
        setattr(torch._dynamo.config, setting, True)
    for function in functions:
        module, _, path = function.partition(":")
        *owners, last = path.split(".")
        owner: Any = importlib.import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        setattr(owner, last, torch.compiler.disable(vars(owner)[last]))
    torch.manual_seed(0)
    build, calls = zoo.case(name)
    model, made = build().eval(), calls()
    eager = fastest(lambda: [model(*call) for call in made])
    compiled = torch.compile(model, backend="inductor")
    start = time.process_time()
    for _ in range(3):
        for call in made:
            compiled(*call)
    cold = time.process_time() - start
    return eager, fastest(lambda: [compiled(*call) for call in made]), cold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the table there (default: print it)")
    parser.add_argument("--row", type=int, metavar="N", help="only that row, as JSON")
    given = parser.parse_args()
    if given.row is not None:
        print(json.dumps(measured(given.row)))
        return
    rows: list[list[object]] = []
    for number, (name, settings, functions) in enumerate(ROWS):
        command = [sys.executable, __file__, "--row", str(number)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        eager, compiled, cold = json.loads(done.stdout.splitlines()[-1])
        left = ", ".join(f"`{function.partition(':')[2]}`" for function in functions)
        figures = [f"{eager:.2f}", f"{compiled:.2f}", f"{cold:.0f}"]
        rows.append([name, ", ".join(f"`{s}`" for s in settings), left, *figures])
    head = ["class", "settings", "left out of graphs", "eager, ms", "compiled, ms", "until it is compiled, s"]
    put(given.into, "left-out", table(head, rows))


if __name__ == "__main__":
    main()
