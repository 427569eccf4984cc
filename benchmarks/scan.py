"""CPU seconds of a scan: fix-compile against TorchFix, Fixit and ruff, on the same files of transformers.

    python benchmarks/scan.py [--files N] [--rounds R] [--python-lint PATH] [--json FILE]

The files are a sample of transformers' ``modeling_*.py`` (found, not imported), copied to a temporary package. Every
run is cold: a new process tree, no cache of results; the seconds are user + system time of that tree, children
included, so that the number of processes matters little. The tools take turns, in an order that turns each round.
TorchFix, Fixit and ruff run when the interpreter given by --python-lint (default: this one) has them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SEED = 1
TARGET = 12  # a scan costs at most 1/12 of TorchFix's CPU seconds


@dataclass(frozen=True)
class Tool:
    """A command that reads a folder and writes nothing; status 0 or 1 is success."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Cost:
    """One run: CPU seconds of the process tree, wall seconds, and what the tool printed when it failed."""

    cpu: float
    wall: float
    failure: str = ""


def package_folder(name: str) -> Path:
    """Where an installed package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{name} is not installed; name a folder with --package")
    return Path(spec.submodule_search_locations[0])


def sample(package: Path, number: int) -> list[Path]:
    """``number`` of the package's modelling files, the same ones each time."""
    files = sorted(package.rglob("modeling_*.py"))
    return sorted(random.Random(SEED).sample(files, min(number, len(files)))) if number else files


def copy_files(files: list[Path], package: Path, target: Path) -> None:
    """Copy the files below ``target``, in their folders, which become packages so that relative imports resolve."""
    for file in files:
        place = target / package.name / file.relative_to(package)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        for folder in (place.parent, *place.parent.parents):
            if folder == target:
                break
            (folder / "__init__.py").touch()


def tools(lint: str) -> list[Tool]:
    """Ours first, then those of the others that the interpreter ``lint`` has."""
    others = [
        Tool("TorchFix", (lint, "-m", "torchfix", "--select=ALL")),
        Tool("Fixit", (lint, "-m", "fixit", "--quiet", "lint")),
        Tool("ruff", (lint, "-m", "ruff", "check", "--isolated", "--no-cache", "--quiet")),
    ]
    ours = Tool("fix-compile", (sys.executable, str(ROOT / "fix_compile.py"), "--verify-only", "--no-cache", "--quiet"))
    return [ours, *(tool for tool in others if has_module(lint, tool.command[2]))]


def has_module(python: str, module: str) -> bool:
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", probe], check=False).returncode == 0


def run(tool: Tool, folder: Path) -> Cost:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([*tool.command, str(folder)], cwd=folder.parent, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return Cost(
        cpu, wall, "" if done.returncode in {0, 1} else f"status {done.returncode}: {done.stderr.strip()[-300:]}"
    )


def measure(chosen: list[Tool], folder: Path, rounds: int) -> dict[str, list[Cost]]:
    costs: dict[str, list[Cost]] = {tool.name: [] for tool in chosen}
    for number in range(rounds):
        for tool in chosen if number % 2 == 0 else chosen[::-1]:
            cost = run(tool, folder)
            print(f"  round {number + 1} {tool.name}: {cost.cpu:.2f} s", file=sys.stderr, flush=True)
            costs[tool.name].append(cost)
    return costs


def summary(name: str, costs: list[Cost], ours: float) -> dict[str, Any]:
    cpu = [cost.cpu for cost in costs]
    return {
        "tool": name,
        "cpu_s": round(statistics.median(cpu), 3),
        "cpu_s_min": round(min(cpu), 3),
        "cpu_s_max": round(max(cpu), 3),
        "wall_s": round(statistics.median(cost.wall for cost in costs), 3),
        "times_ours": round(statistics.median(cpu) / ours, 2),
        "failure": next((cost.failure for cost in costs if cost.failure), ""),
    }


def show(rows: list[dict[str, Any]]) -> None:
    print(f"{'tool':<12} {'CPU s':>8}  {'min - max':<17} {'wall s':>7} {'x ours':>7}")
    for row in rows:
        spread = f"{row['cpu_s_min']:.2f} - {row['cpu_s_max']:.2f}"
        figures = f"{row['cpu_s']:>8.2f}  {spread:<17} {row['wall_s']:>7.2f} {row['times_ours']:>7.2f}"
        print(f"{row['tool']:<12} {figures}  {row['failure']}".rstrip())
    torchfix = next((row for row in rows if row["tool"] == "TorchFix"), None)
    if torchfix and not any(row["failure"] for row in rows):
        met = "met" if torchfix["times_ours"] >= TARGET else "MISSED"
        print(f"\nTorchFix costs {torchfix['times_ours']:.1f} times as much; the target is {TARGET}: {met}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=106, metavar="N", help="how many files (default 106; 0 = all)")
    parser.add_argument("--rounds", type=int, default=3, metavar="R", help="runs of each tool (default 3)")
    parser.add_argument("--package", type=Path, help="folder of the package (default: the installed transformers)")
    parser.add_argument(
        "--python-lint", default=sys.executable, metavar="PATH", help="interpreter with the other tools"
    )
    parser.add_argument("--only", metavar="NAMES", help="comma-separated tools, such as fix-compile,ruff")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()
    package = (options.package or package_folder("transformers")).resolve()
    files = sample(package, options.files)
    if not files:
        sys.exit(f"no modeling_*.py below {package}")
    chosen = tools(options.python_lint)
    if options.only:
        wanted = {"fix-compile", *options.only.split(",")}
        chosen = [tool for tool in chosen if tool.name in wanted]
    size = sum(file.stat().st_size for file in files)
    print(f"{len(files)} files, {size / 1e6:.1f} MB, {options.rounds} rounds, median CPU seconds of the process tree\n")
    with tempfile.TemporaryDirectory() as temporary:
        copy_files(files, package, Path(temporary))
        costs = measure(chosen, Path(temporary) / package.name, options.rounds)
    ours = statistics.median(cost.cpu for cost in costs["fix-compile"])
    rows = [summary(name, found, ours) for name, found in costs.items()]
    show(rows)
    if options.json:
        report = {"files": len(files), "bytes": size, "rounds": options.rounds, "tools": rows}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if any(row["failure"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
