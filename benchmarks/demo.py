"""`make demo`: show what would change in a small model, patch a copy of it, and run both versions side by side.

    python benchmarks/demo.py [--all] [CASE ...]

CASE is a folder of fixtures/ (default: vision_language). Every version runs in a process of its own.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
TOOL = [sys.executable, str(ROOT / "fix_compile.py")]
COUNTED = ("breaks", "recompiles", "graphs", "launches")
HEAD = ("case", "version", "max diff", "max diff of gradients", *COUNTED)


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)]
    return "\n".join([lines[0], "-|-".join("-" * width for width in widths), *lines[1:]])


def largest(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> str:
    """The largest absolute difference of two lists of tensors, or what else is different about them."""
    if [(t.shape, t.dtype) for t in ours] != [(t.shape, t.dtype) for t in theirs]:
        return "other shapes"
    if not ours:
        return "-"
    return (
        f"{max((a.double() - b.double()).abs().max().item() for a, b in zip(ours, theirs, strict=True) if a.numel()):g}"
    )


def measured(model: Path) -> dict[str, Any]:
    result = model.with_suffix(".pt")
    worker = [sys.executable, str(ROOT / "benchmarks" / "measure_case.py"), str(model), str(result)]
    subprocess.run(worker, check=True, timeout=600)
    loaded: dict[str, Any] = torch.load(result)
    return loaded


def gradients(result: dict[str, Any]) -> list[torch.Tensor]:
    return [grad for call in result["gradients"] for grad in call.values() if grad is not None]


def compare(case: str, before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, ...]]:
    differences = largest(before["outputs"], after["outputs"]), largest(gradients(before), gradients(after))
    old, new = (tuple(str(result["counts"][name]) for name in COUNTED) for result in (before, after))
    return [(case, "original", "", "", *old), ("", "patched", *differences, *new)]


def demonstrate(case: str, folder: Path) -> list[tuple[str, ...]]:
    original, patched = folder / "original" / f"{case}.py", folder / "patched" / f"{case}.py"
    for copy in (original, patched):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / "fixtures" / case / "before.py", copy)
    print(f"$ fix-compile --dry-run {case}.py", flush=True)
    subprocess.run([*TOOL, "--dry-run", patched.name], cwd=patched.parent, check=True)
    print(f"\n$ fix-compile --no-backup {case}.py", flush=True)
    subprocess.run([*TOOL, "--no-backup", patched.name], cwd=patched.parent, check=True)
    print("\nRunning both versions, eager and under Dynamo ...\n", flush=True)
    return compare(case, measured(original), measured(patched))


def main() -> None:
    cases = sorted(path.parent.name for path in (ROOT / "fixtures").glob("*/before.py"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="*", default=["vision_language"], help=f"one of {', '.join(cases)}")
    parser.add_argument("--all", action="store_true", help="every fixture")
    options = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases if options.all else options.case:
            if case not in cases:
                parser.error(f"no fixture {case!r}; there are {', '.join(cases)}")
            rows += demonstrate(case, Path(folder))
    print(table(HEAD, rows))
    print(
        "\nDifferences: eager outputs (and gradients) of the patched source against the original; 0 is bitwise equal."
    )
    print("Launches: compiled graphs that run in the last call.")


if __name__ == "__main__":
    main()
