"""What four tools say of one model that breaks: the captioner of `make demo`, before it is patched.

    pip install torchfix tlparse                                  # in an environment of its own
    python benchmarks/compare.py --tools ENVIRONMENT/bin [--into docs/compare.md]

Each tool gets the same file and, where it runs the model, the same calls, on the CPU with the backend "eager", in a
process of its own. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tables import put, table

ROOT = Path(__file__).resolve().parent.parent
MODEL, CASE = ROOT / "fixtures" / "vision_language" / "before.py", ROOT / "benchmarks" / "demo_case.py"
EXPLAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch, demo_case
model, calls = demo_case.build(), demo_case.calls()
args, kwargs = calls[0] if isinstance(calls[0][1], dict) else (calls[0], {})
told = torch._dynamo.explain(model)(*args, **kwargs)
stacks = [reason.user_stack[-1] if reason.user_stack else None for reason in told.break_reasons]
places = {(s.filename, s.lineno) for s in stacks if s is not None}
print(json.dumps({"graphs": told.graph_count, "breaks": told.graph_break_count, "places": len(places)}))
"""
COMPILED = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, demo_case
model, calls = demo_case.build(), demo_case.calls()
compiled = torch.compile(model, backend="eager")
for call in calls:
    if callable(call):
        call(compiled)
    else:
        args, kwargs = call if isinstance(call[1], dict) else (call, {})
        compiled(*args, **kwargs)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, required=True, help="where torchfix and tlparse are")
    parser.add_argument("--into", type=Path, help="a document whose tables are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        place = Path(folder)
        (place / "captioner.py").write_bytes(MODEL.read_bytes())
        (place / "demo_case.py").write_bytes(CASE.read_bytes())
        rows = [torchfix(options.tools, place), explain(place), tlparse(options.tools, place), *ours(place)]
    head = ("tool", "runs the model", "what it reports", "places", "fixes made", "breaks left", "seconds")
    shown = table(head, rows)
    print(shown)
    examples = of_examples(options.tools)
    print(examples)
    if options.into:
        put(options.into, "tools", shown)
        put(options.into, "examples", examples)


def timed(command: list[str], folder: Path, **more: str) -> tuple[str, float]:
    """Standard output of a command, with what went wrong where there is none, and seconds."""
    start = time.monotonic()
    ended = subprocess.run(command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, check=False)
    return ended.stdout or ended.stderr, time.monotonic() - start


def torchfix(tools: Path, folder: Path) -> tuple[str, ...]:
    told, seconds = timed([str(tools / "torchfix"), "--select", "ALL", "captioner.py"], folder)
    found = re.findall(r"^captioner\.py:\d+:\d+: TOR\d+", told, re.MULTILINE)
    return "TorchFix", "no", f"{len(found)} findings", str(len(found)), "0", "-", f"{seconds:.1f}"


def explain(folder: Path) -> tuple[str, ...]:
    told, seconds = timed([sys.executable, "-c", EXPLAIN, str(folder)], folder)
    found = json.loads(next(line for line in told.splitlines() if line.startswith("{")))
    what = f"{found['graphs']} graphs, {found['breaks']} breaks of one call, with stacks"
    return "`torch._dynamo.explain`", "one call", what, str(found["places"]), "0", "-", f"{seconds:.1f}"


def tlparse(tools: Path, folder: Path) -> tuple[str, ...]:
    """Its report is a folder of pages made of torch's trace; breaks are its restarts and failures by place."""
    trace = folder / "trace"
    _, ran = timed([sys.executable, "-c", COMPILED, str(folder)], folder, TORCH_TRACE=str(trace))
    logs = sorted(trace.glob("*"))
    assert logs, "torch has written no trace"
    report = folder / "tl_out"
    told, parsed = timed([str(tools / "tlparse"), str(logs[0]), "-o", str(report), "--no-browser"], folder)
    pages = [file for file in report.rglob("*") if file.is_file()]
    assert pages, told
    compiled = {p.name for p in report.glob("*_*") if p.is_dir()}
    what = f"{len(compiled)} compilations, {len(pages)} files of details"
    places = {m for page in pages if page.suffix == ".html" for m in _blamed(page)}
    return "tlparse", "all calls", what, str(len(places)) if places else "-", "0", "-", f"{ran + parsed:.1f}"


def _blamed(page: Path) -> list[str]:
    return re.findall(r"captioner\.py:\d+", page.read_text(encoding="utf-8", errors="replace"))


def ours(folder: Path) -> list[tuple[str, ...]]:
    tool = [sys.executable, str(ROOT / "fix_compile.py")]
    told, seconds = timed([*tool, "check", "--format", "json", "--no-cache", "captioner.py"], folder)
    found = json.loads(told)["files"][0]["findings"]
    lines = {finding["line"] for finding in found}
    fixable = sum(finding["status"] == "fixable" for finding in found)
    rows = [
        (
            "`fix-compile check`",
            "no",
            f"{len(found)} findings, {fixable} with a safe fix",
            str(len(lines)),
            "0",
            "-",
            f"{seconds:.1f}",
        )
    ]
    options = ["--quick", "--backend", "eager", "--case", "demo_case.py", "captioner.py"]
    told, seconds = timed([*tool, "test", "--format", "json", *options], folder)
    document = json.loads(told[told.index("{") : told.rindex("}") + 1])
    (case,) = document["results"]["cases"]
    counts = {v["tree"]: v["counts"] for v in case["variants"] if v["kind"] == "compiled"}
    what = f"before and after: {document['verdicts'][0]['status']}"
    before, after = counts["original"], counts["patched"]
    broken = next(v for v in case["variants"] if v["kind"] == "compiled" and v["tree"] == "original")["breaks"]
    left = f"{before['breaks']} -> {after['breaks']} (recompiles {before['recompiles']} -> {after['recompiles']})"
    places = len({site["where"] for site in broken})
    rows.append(("`fix-compile test`", "all calls", what, str(places), str(fixable), left, f"{seconds:.1f}"))
    return rows


def of_examples(tools: Path) -> str:
    """Of the sources in the rules' examples, how many each static tool reports."""
    sys.path.insert(0, str(ROOT))
    from rules import load_rules

    sources = [example.before for rule in load_rules() for example in rule.invalid]
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        for number, source in enumerate(sources):
            (Path(folder) / f"e{number:04d}.py").write_text(source, encoding="utf-8")
        told, _ = timed([str(tools / "torchfix"), "--select", "ALL", "."], Path(folder))
        hit = set(re.findall(r"(e\d{4})\.py:\d+:\d+: TOR", told))
        kinds = sorted(set(re.findall(r"(TOR\d+)", told)))
    rows = [("TorchFix", str(len(sources)), str(len(hit)), ", ".join(kinds) or "none")]
    return table(("tool", "examples of our rules", "with a finding", "its rules"), rows)


if __name__ == "__main__":
    main()
