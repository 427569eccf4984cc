"""What a fleet costs besides measuring: tiny cases in two processes of this machine, and on two Dask workers.

    python benchmarks/fleet.py [--cases 50]

Prints a Markdown table. Overhead: of a row, all seconds less those that its plan took where it ran, with two rows at a
time, so that none waits for a place.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear({width}, {width})

    def forward(self, x):
        y = self.line(x)
        if y.sum() > 0:
            y = y * 2
        return y
"""
CASE = """import torch
from net import Net


def build():
    torch.manual_seed(0)
    return Net()


def calls():
    return [((torch.ones(2, {width}),), {{}})]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        zoo = Path(folder)
        text = 'do = ["test"]\nquick = true\nbackend = "eager"\n'
        for number in range(options.cases):
            model = zoo / f"m{number:03d}"
            model.mkdir()
            (model / "net.py").write_text(NET.format(width=4 + number), encoding="utf-8")
            (model / "case.py").write_text(CASE.format(width=4 + number), encoding="utf-8")
            text += f'[[model]]\npath = "{model.name}"\npaths = ["net.py"]\ncases = ["case.py"]\n'
        (zoo / "fleet.toml").write_text(text, encoding="utf-8")
        print("| where | rows | answers | wall s | wall s a row | overhead s a row, median | most |")
        print("|---|---|---|---|---|---|---|")
        local = called(zoo, "this machine, 2 processes", "local.jsonl")
        processes, address = cluster(zoo)
        try:
            dask = called(zoo, "2 Dask workers on this machine", "dask.jsonl", "--scheduler", address)
        finally:
            for process in processes:
                process.kill()
        same = [said(row) for row in local] == [said(row) for row in dask]
        print(
            f"\nCounts and verdicts {'are the same' if same else 'DIFFER'}. Load when done: {os.getloadavg()[1]:.1f}."
        )
        print(f"CPU seconds of all children: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f}.")


def called(zoo: Path, name: str, rows: str, *more: str) -> list[dict[str, object]]:
    command = [sys.executable, str(ROOT / "fix_compile.py"), "fleet", "fleet.toml", "-j", "2", "-q"]
    start = time.monotonic()
    ended = subprocess.run(
        [*command, "--rows", rows, "--format", "jsonl", *more], cwd=zoo, stdout=subprocess.PIPE, check=False, text=True
    )
    wall = time.monotonic() - start
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    over = [row["seconds"] - row["measuring"] for row in found]
    answers = ", ".join(sorted({row["answer"] for row in found}))
    figures = (f"{wall:.0f}", f"{wall / len(found):.1f}", f"{statistics.median(over):.1f}", f"{max(over):.1f}")
    print(f"| {name} | {len(found)} | {answers} | {' | '.join(figures)} |", flush=True)
    return found


def said(row: dict[str, object]) -> object:
    figures = row["figures"]
    assert isinstance(figures, dict)
    counts = {key: value for key, value in figures.items() if not key.endswith("_ms") and key != "speedup"}
    return row["model"], row["answer"], row["told"], counts


def cluster(folder: Path) -> tuple[list[subprocess.Popen[bytes]], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    scheduler = ["dask_scheduler", "--host", address, "--no-dashboard", "--no-jupyter"]
    worker = ["dask_worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{words[0]}", *words[1:]],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for words in (scheduler, worker, worker)
    ]
    return started, address


if __name__ == "__main__":
    main()
