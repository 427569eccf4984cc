"""Repositories that the rules were not written for: what a default run would change, and what a maintainer would say.

    python benchmarks/wild.py FOLDER [--only NAMES] [--into docs/results/wild.md]        # NAMES: lerobot,litgpt

FOLDER holds the repositories, each in a folder of its own name, at the commits below. Each is read by
``fix-compile diff`` with one process and without results of earlier runs; nothing is written. Files, CPU seconds,
findings and hunks are counted; what becomes of a hunk is said by a person, in ``wild.csv`` beside this file, by
repository, file and the line that changes first. A hunk that nobody has read is an error.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tables import put, table

ROOT = Path(__file__).resolve().parent.parent
VERDICTS = Path(__file__).with_suffix(".csv")
#: What a maintainer says of a hunk: it takes away a break or recompile that a compiled call of this code has; it is
#: right and does nothing for what is compiled; no.
WORDS = ("needed", "harmless", "refuse")
REPOSITORIES = {
    "openai/whisper": "c0d2f624c09dc18e709e37c2ad90c039a4eb72a2",
    "google-research/timesfm": "3dae50b20d7a724981e8ea36cda75578f80dd2dc",
    "nari-labs/dia": "876125e461a03b157ec905b0fe8b57a0f8b9e7a0",
    "amazon-science/chronos-forecasting": "95185d1336e5bfdf50374d44c06ad9e10b303144",
    "facebookresearch/sam2": "2b90b9f5ceec907a1c18123530e92e794ad901a4",
    "suno-ai/bark": "f4f32d4cd480dfec1c245d258174bc9bde3c2148",
    "karpathy/nanoGPT": "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
    "pytorch-labs/gpt-fast": "32971d3129541c5bfb4f715abc33d1c5f408d204",
    "Lightning-AI/litgpt": "26857050fe3ff627cd714fe92f5838f51a3d5efa",
    "Stability-AI/stable-audio-tools": "50049e379e2fe8e35bffc99e57f23ade1c3471b7",
    "kohya-ss/sd-scripts": "48d368fa557731ad0488c07304dfeba8c07910eb",
    "kohya-ss/musubi-tuner": "30c658c4f4b0bf05038b3346eff9670259b10fc7",
    "huggingface/lerobot": "7427f31801f944f5ec9ce53cda02862ce7d1638b",
    "huggingface/diffusers": "58eb52c0803ea9af3abec60841c2a093bdf1f951",
}
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ", re.MULTILINE)


@dataclass(frozen=True)
class Hunk:
    """A hunk of a diff: its file, the line of the original that changes first, the rules that have a fix in it."""

    file: str
    line: int
    rules: str


@dataclass(frozen=True)
class Reading:
    """What the tool says of one repository. ``seconds``: CPU time of the process tree.

    ``idle``: functions that were left alone because nothing compiles them.
    """

    files: int
    passed_over: int
    idle: int
    seconds: float
    findings: int
    bugs: int
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True)
class Verdict:
    """What a person says of a hunk, and why."""

    word: str
    reason: str


Verdicts = dict[tuple[str, str, int], Verdict]


def ask(folder: Path) -> tuple[dict[str, Any], float]:
    """What the tool says of a repository, and its CPU seconds. Raises RuntimeError when it fails."""
    command = [sys.executable, str(ROOT / "fix_compile.py"), "--dry-run", "--format", "json", "-j", "1", "--no-cache"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [*command, "."], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        told = json.loads(done.stdout)  # status 2 as well: files that this Python cannot parse
    except ValueError:
        raise RuntimeError(f"{folder.name}: status {done.returncode}: {done.stderr.strip()[-300:]}") from None
    return told, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def answer(folder: Path, kept: Path | None) -> tuple[dict[str, Any], float]:
    """As `ask`: now, or as it is kept in the folder ``kept``."""
    place = kept / f"{folder.name}.json" if kept is not None else None
    if place is not None and place.is_file():
        earlier = json.loads(place.read_text(encoding="utf-8"))
        return earlier["told"], earlier["seconds"]
    told, seconds = ask(folder)
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps({"told": told, "seconds": seconds}), encoding="utf-8")
    return told, seconds


def read(folder: Path, kept: Path | None) -> Reading:
    """What the tool says of a repository: now, or as it is kept in the folder ``kept``."""
    told, seconds = answer(folder, kept)
    return Reading(
        files=told["summary"]["files"],
        passed_over=told["summary"]["passed_over"],
        idle=told["summary"]["not_compiled"],
        seconds=seconds,
        findings=told["summary"]["findings"],
        bugs=sum(len(entry["bugs"]) for entry in told["files"]),
        hunks=tuple(hunk for entry in told["files"] for hunk in hunks_of(entry)),
    )


def hunks_of(entry: dict[str, Any]) -> Iterator[Hunk]:
    """The hunks of one file in the JSON report."""
    diff = entry.get("diff") or ""
    heads = list(_HUNK.finditer(diff))
    if not heads:
        return
    ends = [*(head.start() for head in heads[1:]), len(diff)]
    fixes = [(f["line"], f["end_line"], f["code"]) for f in entry["findings"] if f["status"] == "fixable"]
    for head, end in zip(heads, ends, strict=True):
        first, length = int(head[1]), int(head[2] or 1)
        body = diff[diff.index("\n", head.start()) + 1 : end].splitlines()
        same = next(i for i, line in enumerate(body) if line[:1] in ("+", "-"))
        rules = {code for start, stop, code in fixes if start < first + length and stop >= first}
        yield Hunk(entry["path"], first + same, " ".join(sorted(rules)))


def verdicts(file: Path) -> Verdicts:
    """What was said of each hunk. Raises ValueError for a word that is none of the three."""
    found: Verdicts = {}
    with file.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            if row["verdict"] not in WORDS or not row["reason"]:
                raise ValueError(f"{row['repository']}, {row['file']}, line {row['line']}: no verdict with a reason")
            key = (row["repository"], row["file"], int(row["line"]))
            found[key] = Verdict(row["verdict"], row["reason"])
    return found


def sums(readings: dict[str, Reading], said: Verdicts) -> str:
    """A row for each repository, and one for all."""
    rows: list[list[object]] = []
    total: Counter[str] = Counter()
    for name, reading in readings.items():
        words = Counter(said[name, h.file, h.line].word for h in reading.hunks)
        total.update(words)
        commit = REPOSITORIES[name][:10]
        rules = Counter(code for h in reading.hunks for code in h.rules.split())
        by_rule = ", ".join(f"{code} {n}" for code, n in sorted(rules.items()))
        read_ = f"{reading.files} ({reading.passed_over})"
        counts = [reading.findings, reading.idle, len(reading.hunks), by_rule, *(words[w] for w in WORDS)]
        rows.append([name, commit, read_, f"{reading.seconds:.1f}", *counts])
    every = list(readings.values())
    share = f" ({total['needed'] / total.total():.0%})" if total else ""
    rows.append(
        [
            "all",
            "",
            f"{sum(r.files for r in every)} ({sum(r.passed_over for r in every)})",
            f"{sum(r.seconds for r in every):.1f}",
            sum(r.findings for r in every),
            sum(r.idle for r in every),
            sum(len(r.hunks) for r in every),
            "",
            f"{total['needed']}{share}",
            total["harmless"],
            total["refuse"],
        ]
    )
    told = ["files (passed over)", "CPU s", "findings", "functions not compiled", "safe hunks", "rules"]
    return table(["repository", "commit", *told, *WORDS], rows)


def each(readings: dict[str, Reading], said: Verdicts) -> str:
    """A row for each hunk."""
    rows = []
    for name, reading in readings.items():
        for h in reading.hunks:
            verdict = said[name, h.file, h.line]
            rows.append([name, f"`{h.file}:{h.line}`", h.rules, verdict.word, verdict.reason])
    return table(["repository", "place", "rule", "verdict", "why"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", metavar="NAMES", help="repositories, with commas between them")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the answers there, and use those of before")
    parser.add_argument("--into", type=Path, metavar="DOCUMENT", help="put the tables there (default: print them)")
    options = parser.parse_args()
    wanted = options.only.split(",") if options.only else [name.rpartition("/")[2] for name in REPOSITORIES]
    names = [name for name in REPOSITORIES if name.rpartition("/")[2] in wanted]
    readings: dict[str, Reading] = {}
    for name in names:
        readings[name] = read(options.folder / name.rpartition("/")[2], options.keep)
        print(f"{name}: {readings[name].seconds:.1f} s, {len(readings[name].hunks)} hunks", file=sys.stderr, flush=True)
    said = verdicts(VERDICTS)
    unread = [(n, h) for n, r in readings.items() for h in r.hunks if (n, h.file, h.line) not in said]
    for name, hunk in unread:
        print(f"not in {VERDICTS.name}: {name},{hunk.file},{hunk.line},{hunk.rules}", file=sys.stderr)
    if unread:
        sys.exit(1)
    put(options.into, "repositories", sums(readings, said))
    put(options.into, "hunks", each(readings, said))


if __name__ == "__main__":
    main()
