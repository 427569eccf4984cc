"""``diagnose --tune`` on nanoVLM, Toto and a transformer of FLUX's kind: folders for a GPU's machine, and the page.

    python benchmarks/tune.py export --nanovlm CHECKOUT --toto FOLDER OUT     # here; the trees as they are to be tuned
    OUT=RESULTS bash OUT/run.sh                                               # there
    python benchmarks/tune.py written RESULTS/flux.json OUT/flux              # there: the recommended call in a script
    python benchmarks/tune.py page RESULTS --into docs/results/tune.md        # here, with what came back

``run.sh`` stops by itself: each case has its seconds, ways that are not reached say so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from tables import put  # noqa: E402

from patcher.diagnose.diagnosis import Diagnostic  # noqa: E402
from patcher.diagnose.diagnostics import TUNE, diagnostics  # noqa: E402
from patcher.diagnose.tuned import recommended  # noqa: E402
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
    Measured("flux", "flux_step", "A transformer of FLUX's kind, a denoising step", 0.1, 900, 200),
    Measured("nanovlm", "nanovlm_batch", "nanoVLM, forward of batches 1, 2, 4 x 256", 0.13, 900, 200),
    Measured("toto", "toto_decode", "Toto, prefill 16 + 12 steps, two rounds", 0.25, 900, 200),
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
        "# SHARE, of the blocks to build; WAYS, names of JSON with commas; SUFFIX of the files; LIMIT, seconds for",
        "# all ways of a case; EACH, for a process.",
        'cd "$(dirname "$0")"; : "${OUT:?the folder for results}"; mkdir -p "$OUT"; OUT=$(cd "$OUT" && pwd)',
        "export CASE_SIZE=${CASE_SIZE:-released} PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1",
        "run() {",
        '  case " ${CASES:-flux nanovlm toto} " in *" $1 "*) ;; *) return ;; esac',
        '  cd "$1" || return; rm -f results.json',
        '  [ -z "$EACH" ] || sed -i "s/\\"\\(seconds\\|each\\)\\": [0-9.]*/\\"\\1\\": $EACH/" plan.json',
        '  [ -z "$LIMIT" ] || sed -i "/\\"tune\\"/,/}/s/\\"seconds\\": [0-9.]*/\\"seconds\\": $LIMIT/" plan.json',
        '  [ -z "$WAYS" ] || sed -i "s/\\"ways\\": \\[[^]]*\\]/\\"ways\\": [$WAYS]/" plan.json',
        '  CASE_LAYERS=${SHARE:-$2} python3 worker.py plan.json | tee "$OUT/$1.log"',
        '  cp results.json "$OUT/$1${SUFFIX}.json"; cd ..',
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


#: The user's script: ``{paths}`` of imports, the ``{case}``, the ``{lines}`` to the letter, ``{marks}`` before a call.
SCRIPT = """
import inspect, json, statistics, sys, time
sys.path[:0] = {paths!r}
import torch
import {case} as case

dtype = getattr(case, "dtype", None)
model = case.build().to(case.device, dtype)


def moved(x):
    return x.to(case.device, dtype if x.is_floating_point() else None) if isinstance(x, torch.Tensor) else x


calls = [call if callable(call) else tuple(map(moved, call)) for call in case.calls()]
names = inspect.signature(model.forward)
{lines}


def called(*arguments):
    given = names.bind(*arguments).arguments
    for line in {marks!r}:
        exec(line, {{"torch": torch, **given}})
    return model(*arguments)


called.parameters, called.toto = model.parameters, getattr(model, "toto", None)


def one_call(call):
    torch.compiler.cudagraph_mark_step_begin()
    start = time.perf_counter()
    call(called) if callable(call) else called(*call)
    torch.cuda.synchronize() if torch.cuda.is_available() else None
    return time.perf_counter() - start


with torch.no_grad():
    cold, times, start = sum(map(one_call, calls)), [], time.perf_counter()
    for _ in range({passes}):
        list(map(one_call, calls))
    while len(times) < 3 or time.perf_counter() - start < 3:
        times.append(1e3 * sum(map(one_call, calls)) / len(calls))
low, median, high = statistics.quantiles(times, n=4, method="inclusive")
print(json.dumps(dict(cold_seconds=cold, call_ms=[low, median, high])), flush=True)
"""


def written(file: Path, folder: Path, limit: float) -> None:
    """Write the recommended call of a case into a script; what it takes, in two processes, beside the results."""
    results = from_json(json.loads(file.read_bytes()))
    case = results.cases[0]
    (probe,) = (probe for probe in case.probes if probe.name == TUNE)
    best = recommended(case, probe)
    if best is None:
        return
    plan = json.loads((folder / "plan.json").read_bytes())
    marks = probe.figures["marking"] if best["marked"] else []
    script = SCRIPT.format(
        paths=[str((folder / path).resolve()) for path in plan["path"]],
        case=Path(plan["cases"][0]["file"]).stem,
        lines="\n".join(best["lines"]),
        marks=marks,
        passes=best["passes"] + 1,
    )
    (file.parent / f"written-{file.stem}.py").write_text(script, encoding="utf-8")
    told: Json = {"best": best["name"], "measured": best, "runs": []}
    with tempfile.TemporaryDirectory(prefix="written-") as cache:
        own = {"TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor", "TRITON_CACHE_DIR": f"{cache}/triton"}
        own |= {"TRITON_PTXAS_PATH": best["assembler"]} if best.get("assembler") else {}
        for which in ("empty cache", "second process"):
            run: Json = {"which": which}
            try:
                done = subprocess.run(
                    [sys.executable, "-c", script],
                    env={**os.environ, **own},
                    capture_output=True,
                    timeout=limit,
                    check=True,
                )
                run |= json.loads(done.stdout.splitlines()[-1])
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                run |= {"error": str(error)[-300:], "tail": (error.stderr or b"").decode()[-2000:]}
            told["runs"].append(run)
    (file.parent / f"written-{file.stem}.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


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
    yield f"torch {where.torch}, Python {where.python}, {where.device}, CUDA {where.cuda}."
    yield ""
    for case in cases:
        yield f"### {case.one.title}"
        yield ""
        for number, results in enumerate(case.runs, 1):
            if len(case.runs) > 1:
                yield f"#### Run {number}"
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
    yield "### Beside the presets of ComfyUI-TorchCompileSpeed"
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
    running = calls.add_parser("written")
    running.add_argument("file", type=Path)
    running.add_argument("folder", type=Path)
    running.add_argument("--seconds", type=float, default=120.0, help="for each of two processes")
    reading = calls.add_parser("page")
    reading.add_argument("results", type=Path)
    reading.add_argument("--into", type=Path)
    options = parser.parse_args()
    if options.call == "export":
        options.out.mkdir(parents=True, exist_ok=True)
        own = HERE / "cases" / "_flux.py"
        export({"nanovlm": options.nanovlm, "toto": options.toto, "flux": own}, options.out.resolve())
    elif options.call == "written":
        written(options.file, options.folder, options.seconds)
    elif options.into:
        put(options.into, "tune", page(options.results).rstrip())
    else:
        sys.stdout.write(page(options.results))


if __name__ == "__main__":
    main()
