"""What it costs to start a compiled graph, in operators that could have run eagerly instead.

    python benchmarks/graph_start.py [--into docs/results/graph-start.md]

One thread of a CPU, small tensors: the fastest of nine rounds, in microseconds of CPU time a call. The operators are
element by element, so that inductor makes one kernel of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tables import put, table

ROUNDS, CALLS = 9, 300
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 48)


def work(count: int) -> Callable[[Any, Any], Any]:
    """A function of ``count`` operators."""

    def run(x: Any, w: Any) -> Any:
        for number in range(count):
            x = x + w if number % 3 == 0 else x * w if number % 3 == 1 else x.relu()
        return x

    return run


def microseconds(call: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(CALLS):
            call()
        best = min(best, (time.process_time() - start) / CALLS * 1e6)
    return best


def measured(side: int) -> list[list[object]]:
    """For each number of operators: eager, and compiled with the backends eager and inductor."""
    import torch

    torch.set_num_threads(1)
    x, w = torch.rand(side, side), torch.rand(side, side)
    rows: list[list[object]] = []
    for count in COUNTS:
        plain = work(count)
        times = [microseconds(lambda plain=plain: plain(x, w))]  # type: ignore[misc]
        for backend in ("eager", "inductor"):
            torch._dynamo.reset()
            compiled = torch.compile(plain, backend=backend, dynamic=False)
            compiled(x, w)
            times.append(microseconds(lambda compiled=compiled: compiled(x, w)))  # type: ignore[misc]
        rows.append([f"{side} x {side}", count, *(f"{value:.1f}" for value in times)])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the table there (default: print it)")
    given = parser.parse_args()
    import torch

    with torch.no_grad():
        rows = [row for side in (16, 64, 256) for row in measured(side)]
    head = ["tensors", "operators", "eager, us", "in a graph, not compiled, us", "in a graph of inductor, us"]
    put(given.into, "graph-start", f"torch {torch.__version__}\n\n{table(head, rows)}")


if __name__ == "__main__":
    main()
