"""``diagnose --tune`` on nanoVLM, Toto and a transformer of FLUX's kind: folders for a GPU's machine, and the page.

    python benchmarks/tune.py export --nanovlm CHECKOUT --toto FOLDER OUT     # here; the trees as they are to be tuned
    OUT=RESULTS bash OUT/run.sh                                               # there
    python benchmarks/tune.py page RESULTS --into docs/results/tune.md        # here, with what came back

``run.sh`` stops by itself: each case has its seconds, ways that are not reached say so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from patcher.diagnose.diagnosis import Diagnostic  # noqa: E402
from patcher.diagnose.diagnostics import TUNE, diagnostics  # noqa: E402
from patcher.harness.measured import Results, from_json  # noqa: E402

Json = dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """A case. ``share``: of its blocks that are built; ``seconds``: for all ways; ``each``: for one process."""

    name: str
    case: str
    title: str
    share: float
    seconds: int
    each: int


@dataclass(frozen=True)
class Told:
    """What came back of a case: its runs, the latest last, and what its recommended call took in the user's script."""

    one: Measured
    runs: list[Results]
    written: Json


CASES = (
    Measured("flux", "flux_step", "A transformer of FLUX's kind, a denoising step", 0.1, 160, 80),
    Measured("nanovlm", "nanovlm_batch", "nanoVLM, forward of batches 1, 2, 4 x 256", 0.2, 140, 60),
    Measured("toto", "toto_decode", "Toto, prefill 16 + 12 steps, two rounds", 0.25, 140, 60),
)
#: What source document 003 measured on an RTX 5090: first and "second" run. The second is no time of a model.
DOCUMENTED = {
    "default": "14.38 s",
    "max-autotune-no-cudagraphs": "7.73 s",
    "speed": "10.52 s",
}


def export(trees: Mapping[str, Path], out: Path) -> None:
    """Write a folder for each case, and ``run.sh``."""
    lines = [
        "#!/usr/bin/env bash",
        "# Measures, and leaves NAME.json in $OUT. Of the environment: OUT, a folder; CASES, some of the three names;",
        "# SHARE, of the blocks to build; LIMIT, seconds for all ways of a case; EACH, for a process.",
        'cd "$(dirname "$0")"; : "${OUT:?the folder for results}"; mkdir -p "$OUT"; OUT=$(cd "$OUT" && pwd)',
        "export CASE_SIZE=${CASE_SIZE:-released} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1",
        "run() {",
        '  case " ${CASES:-flux nanovlm toto} " in *" $1 "*) ;; *) return ;; esac',
        '  cd "$1" || return; rm -f results.json',
        '  [ -z "$EACH" ] || sed -i "s/\\"\\(seconds\\|each\\)\\": [0-9.]*/\\"\\1\\": $EACH/" plan.json',
        '  [ -z "$LIMIT" ] || sed -i "/\\"tune\\"/,/}/s/\\"seconds\\": [0-9.]*/\\"seconds\\": $LIMIT/" plan.json',
        '  CASE_LAYERS=${SHARE:-$2} python3 worker.py plan.json | tee "$OUT/$1.log"',
        '  cp results.json "$OUT/$1.json"; cd ..',
        "}",
    ]
    for one in CASES:
        call = [sys.executable, "-m", "fix_compile", "diagnose", "--tune", "--export", str(out / one.name)]
        call += ["--case", str(HERE / "cases" / f"{one.case}.py"), "--time-limit", str(one.each)]
        call += ["--tune-limit", str(one.seconds), str(trees[one.name])]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        subprocess.run(call, check=True, env=environment, stdout=subprocess.DEVNULL)
        lines.append(f"run {one.name} {one.share}")
    (out / "run.sh").write_text("\n".join([*lines, ""]), encoding="utf-8")


def page(folder: Path) -> str:
    """The page of all cases whose results are there: NAME.json, and of later runs NAME-2.json and so on."""
    told = []
    for one in CASES:
        files = [folder / f"{one.name}.json", *sorted(folder.glob(f"{one.name}-[0-9].json"))]
        runs = [from_json(json.loads(file.read_bytes())) for file in files if file.exists()]
        written = folder / f"written-{one.name}.json"
        if runs:
            told.append(Told(one, runs, json.loads(written.read_bytes()) if written.exists() else {}))
    return "\n".join(_lines(told)).rstrip() + "\n"


def _lines(cases: list[Told]) -> Iterator[str]:
    where = cases[0].runs[0].environment
    yield f"# `diagnose --tune` on one {where.device}"
    yield ""
    yield (
        f"{len(cases)} of the {len(CASES)} models of benchmarks/tune.py, random weights, blocks of released size;\n"
        "the line above each table says how many were built. Patched by the safe fixes first. Each way to compile\n"
        "ran in a process of its own with an empty cache, and once more in a second one with that cache; those that\n"
        "the time did not reach are named below the table. What is recommended was run to the letter.\n"
        "A later run of a model tries other ways first; it had fewer threads, and other work ran on the other cores.\n"
        "[diagnostics.md](../diagnostics.md#tune) says what the columns mean. Written by `benchmarks/tune.py page`."
    )
    yield ""
    yield f"torch {where.torch}, Python {where.python}, {where.device}, CUDA {where.cuda}."
    yield ""
    for case in cases:
        yield f"## {case.one.title}"
        yield ""
        for number, results in enumerate(case.runs, 1):
            if len(case.runs) > 1:
                yield f"### Run {number}"
                yield ""
            for told in diagnostics(results, (TUNE,)):
                yield from _section(results, told)
        yield from _written(case.written)
    yield from _beside(cases)


def _section(results: Results, told: Diagnostic) -> Iterator[str]:
    threads, torch = results.environment.threads, results.environment.torch
    yield f"{told.message or told.status}. torch {torch}, {threads} threads. {told.seconds:.0f} s, {results.started}."
    yield ""
    if told.columns:
        yield _row(told.columns)
        yield _row(["---"] * len(told.columns))
        yield from (_row(row) for row in told.rows if "was not run" not in row)
        yield ""
    yield from (f"- {line}" for line in told.conclusions)
    yield ""


def _written(told: Json) -> Iterator[str]:
    """The recommended call in the user's script, beside what was measured."""
    done = [run for run in told.get("runs", ()) if "call_ms" in run]
    if not done:
        return
    measured = told["measured"]
    yield "The recommended call, written into a script and run by itself: milliseconds of a call, low and high."
    yield ""
    yield _row(["", "cold s", "one call ms"])
    yield _row(["---"] * 3)
    spread = measured["call_ms"]
    times = [spread["low_ms"], spread["median_ms"], spread["high_ms"]]
    yield _row([f"measured: `{told['best']}`", f"{measured['cold_seconds']:.1f}", _spread(times)])
    for run in done:
        yield _row([f"written, {run['which']}", f"{run['cold_seconds']:.1f}", _spread(run["call_ms"])])
    yield ""


def _spread(times: list[float]) -> str:
    low, median, high = times
    return f"{median:.3g} [{low:.3g}-{high:.3g}]"


def _beside(cases: list[Told]) -> Iterator[str]:
    yield "## Beside the presets of ComfyUI-TorchCompileSpeed"
    yield ""
    yield (
        'Its README tells the first run, of a model it does not name on an RTX 5090, and a "second" of about 0 ms,\n'
        "and gives their quotient (26,603 to 84,554) as the gain. Here the first pass of each preset stands beside\n"
        "the first pass of a second process, and warm times beside eager ones."
    )
    yield ""
    yield _row(["preset", "its first run", *(f"{case.one.name}: cold s, second s, warm ms (eager)" for case in cases)])
    yield _row(["---"] * (2 + len(cases)))
    for name, theirs in DOCUMENTED.items():
        yield _row([name, theirs, *(_latest(case.runs, name) for case in cases)])
    yield ""


def _latest(runs: list[Results], name: str) -> str:
    """Of the latest run that came to a preset."""
    told = [_figures(results, name) for results in reversed(runs)]
    return next((one for one in told if one not in ("skipped", "left out")), told[0])


def _figures(results: Results, name: str) -> str:
    found = [probe.figures for case in results.cases for probe in case.probes if probe.name == TUNE]
    row = next((row for figures in found for row in figures.get("rows", ()) if row["name"] == name), None)
    if row is None or row["status"] != "ok":
        return str(row["status"]) if row else "left out"
    second = (row.get("second") or {}).get("cold_seconds")
    eager = found[0]["facts"]["eager"]["warm"]["median_ms"]
    again = "-" if second is None else f"{second:.1f}"
    return f"{row['cold_seconds']:.1f}, {again}, {row['warm']['median_ms']:.1f} ({eager:.1f})"


def _row(cells: Any) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    calls = parser.add_subparsers(dest="call", required=True)
    writing = calls.add_parser("export")
    writing.add_argument("--nanovlm", type=Path, required=True)
    writing.add_argument("--toto", type=Path, required=True)
    writing.add_argument("out", type=Path)
    reading = calls.add_parser("page")
    reading.add_argument("results", type=Path)
    reading.add_argument("--into", type=Path)
    options = parser.parse_args()
    if options.call == "export":
        options.out.mkdir(parents=True, exist_ok=True)
        own = HERE / "cases" / "_flux.py"
        export({"nanovlm": options.nanovlm, "toto": options.toto, "flux": own}, options.out.resolve())
    elif options.into:
        options.into.write_text(page(options.results), encoding="utf-8")
    else:
        sys.stdout.write(page(options.results))


if __name__ == "__main__":
    main()
