"""Caches that grow, and buffers in their place, with CUDA graphs: what a round takes in each form and mode.

    python benchmarks/static_graphs.py patch FOLDER --nanovlm CHECKOUT
    python FOLDER/static_graphs.py measure FOLDER --what nanoVLM "nanoVLM generate" > RESULTS
    python FOLDER/static_graphs.py measure FOLDER --what gpt encoder_decoder >> RESULTS
    python benchmarks/static_graphs.py write RESULTS --document docs/results/caches.md

CHECKOUT is one of huggingface/nanoVLM at 4e0c096. ``patch`` writes what is measured: nanoVLM's models and the files of
benchmarks/growing, as they are, as a default run makes them, and with ``--unsafe --strategy kv-cache=static``; beside
them what this file needs. ``measure``, where there is a GPU, torch and safetensors, starts a process for each form and
mode, which compiles, and runs four rounds; then all take turns. A round of nanoVLM is a prefill of 64 and 32 steps of
the decoder, 2 rows, the hidden state fed back, without a mask of the user's; "generate" is the model's own, greedily.
The others generate 33 and 65 tokens for a prefix. Matrix products may use TF32, as where earlier figures were taken.
What grows is cloned between the calls of ``reduce-overhead``, where it would be overwritten. ``--tiny`` is for a look
on a CPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
GROWING = ("gpt", "encoder_decoder")
TREES = {"as it is": "original", "patched today": "patched", "kv-cache=static": "static"}
MODES = ("eager", "default", "reduce-overhead")
#: What is measured in which forms and modes.
PLAN: dict[str, Sequence[tuple[str, Sequence[str]]]] = {
    "nanoVLM": [(form, MODES) for form in (*TREES, "by hand")],
    "nanoVLM generate": [
        ("as it is", ("eager", "default")),
        ("patched today", ("reduce-overhead",)),
        ("kv-cache=static", ("reduce-overhead",)),
    ],
    **{name: [(form, MODES) for form in TREES] for name in GROWING},
}
STEPS = {"nanoVLM": 32, "nanoVLM generate": 32, "gpt": 65, "encoder_decoder": 33}
WARM, TURNS = 4, 7  # rounds of each: before they take turns, and in turn
_SKIP = re.compile(r"(?:skipping|disabling) cudagraphs?(?: for \w+)? due to ([^\n.]*)", re.IGNORECASE)
_HEAD = (
    "what", "form", "mode", "breaks", "graphs", "recompiles", "limits hit", "CUDA graphs skipped", "recorded",
    "recorded in the timed rounds", "first round s", "ms a round", "least to most", "furthest output",
)  # fmt: skip


# --- what is measured -------------------------------------------------------------------------------------------------


def patch(folder: Path, nanovlm: Path) -> None:
    """Write the trees and what ``measure`` needs beside them."""
    program = HERE.parent / "fix_compile.py"
    static = ("--unsafe", "--strategy", "kv-cache=static")
    for tree, options in (("original", None), ("patched", ()), ("static", static)):
        shutil.copytree(nanovlm / "models", folder / tree / "nanovlm" / "models")
        shutil.copytree(HERE / "growing", folder / tree / "growing", ignore=shutil.ignore_patterns("__pycache__"))
        if options is not None:
            told = [sys.executable, str(program), "--yes", "--no-backup", *options, str(folder / tree)]
            subprocess.run(told, check=False)
    beside = (HERE / "static_cache.py", Path(__file__), HERE / "cases" / "_nanovlm.py", HERE / "cases" / "_settings.py")
    for path in beside:
        shutil.copy(path, folder)


def _clone(output: Any) -> Any:
    from torch.utils._pytree import tree_map

    return tree_map(lambda t: t.clone() if hasattr(t, "clone") else t, output)


def _round(what: str, form: str, mode: str, folder: Path, tiny: bool) -> Callable[[], Any]:
    """What makes a round, compiled where ``mode`` says so."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    graphs = mode == "reduce-overhead"
    grows = form in ("as it is", "patched today")
    tree = folder / TREES.get(form, "patched")

    def compiled(f: Any) -> Any:
        f = f if mode == "eager" else torch.compile(f, mode=mode)
        return (lambda *args, **more: _clone(f(*args, **more))) if graphs and grows else f

    if what in GROWING:
        module = _module(tree / "growing" / f"{what}.py")
        torch.manual_seed(0)
        model = module.build(tiny).to(device).eval()
        given = module.given(tiny, device)
        model.forward = compiled(model.forward)
        return lambda: module.generate(model, *given, STEPS[what])
    sys.path.insert(0, str(tree / "nanovlm"))
    import _nanovlm
    import static_cache

    with torch.no_grad():
        whole = _nanovlm.model()
        words = _nanovlm.words(2, static_cache.PREFILL).to(device)
    if what == "nanoVLM generate":
        whole.decoder.forward = compiled(whole.decoder.forward)
        return lambda: (whole.generate(words, None, max_new_tokens=STEPS[what], greedy=True),)
    decoder = whole.decoder
    if form == "by hand":
        attention = type(decoder.blocks[0].attn)
        attention.forward, type(decoder).forward = static_cache.attend, static_cache.step
    rounds = {"kv-cache=static": static_cache.roomy, "by hand": static_cache.static}.get(form, static_cache.growing)
    run = rounds(decoder, words, _clone if graphs else lambda output: output)
    f = decoder if mode == "eager" else torch.compile(decoder, mode=mode)
    return lambda: run(f)


def _module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


# --- a process --------------------------------------------------------------------------------------------------------


def work(what: str, form: str, mode: str, folder: Path, tiny: bool, kept: Path) -> None:
    """Compile and warm up, say so, and make a round for each line that comes in."""
    import torch
    from torch._dynamo.utils import counters
    from torch._inductor import cudagraph_trees

    torch.set_float32_matmul_precision("high")
    recorded = [0]
    record = cudagraph_trees.CUDAGraphTreeManager.record_function

    def counted(*args: Any, **more: Any) -> Any:
        recorded[0] += 1
        return record(*args, **more)

    cudagraph_trees.CUDAGraphTreeManager.record_function = counted  # type: ignore[method-assign]
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None

    def timed() -> float:
        wait()
        started = time.perf_counter()
        found.append(go())
        wait()
        return time.perf_counter() - started

    found: list[Any] = []
    row: dict[str, Any] = {"what": what, "form": form, "mode": mode}
    try:
        with torch.no_grad():
            go = _round(what, form, mode, folder, tiny)
            row["first_s"] = round(timed(), 1)
            torch.save([o.cpu() for o in found.pop()], kept)
            for _ in range(WARM - 1):
                timed()
                found.clear()
            stats = counters["stats"]
            row |= {"breaks": sum(counters["graph_break"].values()), "graphs": stats["unique_graphs"]}
            row |= {"skips": counters["inductor"]["cudagraph_skips"], "recorded": recorded[0]}
            print(json.dumps(row), flush=True)
            for _ in sys.stdin:
                before = recorded[0]
                print(json.dumps({"ms": 1000 * timed(), "recorded": recorded[0] - before}), flush=True)
                found.clear()
    except Exception as error:
        told = (str(error).strip().splitlines() or [""])[0]
        print(json.dumps({**row, "error": f"{type(error).__name__}: {told[:160]}"}), flush=True)


class _Worker:
    """A process of `work`, and what it has said."""

    def __init__(self, job: tuple[str, str, str], folder: Path, tiny: bool, temporary: Path) -> None:
        name = re.sub(r"\W+", "_", "-".join(job))
        self.job, self.kept, self.log = job, temporary / f"{name}.pt", temporary / f"{name}.log"
        self.row: dict[str, Any] = dict(zip(("what", "form", "mode"), job, strict=True))
        self.found: list[float] = []
        size = {} if tiny else {"CASE_SIZE": "released"}
        more = {"TORCH_LOGS": "recompiles,perf_hints", "TORCHINDUCTOR_COMPILE_THREADS": "2", **size}
        told = [
            sys.executable,
            str(Path(__file__).resolve()),
            "work",
            str(folder),
            "--job",
            *job,
            "--kept",
            str(self.kept),
        ]
        self.process = subprocess.Popen(
            [*told, "--kept", str(self.kept), *(["--tiny"] if tiny else [])], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log.open("w"), text=True, env={**os.environ, **more},
        )  # fmt: skip

    def said(self) -> dict[str, Any]:
        """The next line, or that it ended."""
        assert self.process.stdout is not None
        line = next((text for text in self.process.stdout if text.startswith("{")), "")
        return json.loads(line) if line else {"error": f"ended with {self.process.wait()}"}

    def ready(self, deadline: float) -> None:
        """Wait for the warm rounds; at ``deadline`` it is ended."""
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(self.said)
            try:
                self.row |= told.result(max(1.0, deadline - time.monotonic()))
            except TimeoutError:
                self.process.kill()
                told.result()
                self.row["error"] = "not warm in the time there was"

    def turn(self) -> None:
        """One round more."""
        if "error" not in self.row:
            assert self.process.stdin is not None
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            told = self.said()
            if "error" in told:
                self.row |= told
            else:
                self.found.append(told["ms"])
                self.row["again"] = self.row.get("again", 0) + told["recorded"]

    def end(self) -> dict[str, Any]:
        """The whole row; the process is gone."""
        if self.process.stdin is not None and self.process.poll() is None:
            self.process.stdin.close()
        self.process.wait()
        log = self.log.read_text(encoding="utf-8", errors="replace")
        self.row["recompiles"] = log.count("Recompiling function")
        self.row["limits"] = len(re.findall(r"hit config\.\w*recompile_limit", log))
        self.row["reasons"] = sorted({m[1].strip() for m in _SKIP.finditer(log)})
        if self.found:
            low, high = min(self.found), max(self.found)
            self.row |= {"ms": round(statistics.median(self.found), 2), "spread": [round(low, 2), round(high, 2)]}
        if "error" in self.row and "Error" not in str(self.row["error"]):
            self.row["error"] += ": " + " ".join(log.strip().splitlines()[-1:])[:160]
        return self.row


def measure(folder: Path, asked: Sequence[str], tiny: bool, limit: float) -> Iterator[dict[str, Any]]:
    """All forms of what is ``asked`` for: a row for each, with what was found; within about ``limit`` seconds."""
    import torch

    end = time.monotonic() + limit
    cuda = torch.cuda.is_available()
    yield {"torch": torch.__version__, "device": torch.cuda.get_device_name() if cuda else "CPU: no CUDA graphs"}
    jobs = [(what, form, mode) for what in asked for form, modes in PLAN[what] for mode in modes]
    with tempfile.TemporaryDirectory() as temporary:
        workers: list[_Worker] = []

        def warm(job: tuple[str, str, str]) -> None:
            worker = _Worker(job, folder, tiny, Path(temporary))
            workers.append(worker)
            worker.ready(end - limit / 4)

        with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1 if cuda else 1)) as pool:
            list(pool.map(warm, sorted(jobs, key=lambda job: job[1:] != ("as it is", "reduce-overhead"))))
        workers.sort(key=lambda worker: jobs.index(worker.job))
        for turn in range(TURNS):
            if turn > 2 and time.monotonic() > end - 10:
                break
            for worker in workers:
                worker.turn()
        rows = {worker.job: worker.end() for worker in workers}
        for worker in workers:
            truth = next(w.kept for w in workers if w.job == (worker.job[0], "as it is", "eager"))
            if worker.kept.is_file() and truth.is_file():
                rows[worker.job]["off"] = _off(torch.load(truth), torch.load(worker.kept))
        yield from rows.values()


def _off(expected: Sequence[Any], found: Sequence[Any]) -> str:
    if all(not e.is_floating_point() for e in expected[:1]):
        same = sum(int((e == f).sum()) for e, f in zip(expected[:1], found[:1], strict=True))
        told = f"{same} of {expected[0].numel()} tokens"
        return ", ".join([told, *(f"{(e - f).abs().max():.1e}" for e, f in zip(expected[1:], found[1:], strict=True))])
    far = max((e - f).abs().max().item() for e, f in zip(expected, found, strict=True))
    return f"{far:.1e} of {max(e.abs().max().item() for e in expected):.1f}"


# --- the table --------------------------------------------------------------------------------------------------------


def table_of(text: str, asked: Sequence[str]) -> str:
    """The rows in ``text``, JSON lines of one run or several on one machine, as a Markdown table."""
    head, *found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    assert all(row == head for row in found if "what" not in row), "not of one machine"
    rows = [row for row in found if row.get("what") in asked]
    lines = [list(_HEAD), ["---"] * len(_HEAD), *([str(c).replace("|", "\\|") for c in _cells(row)] for row in rows)]
    return "\n".join([f"torch {head['torch']}, {head['device']}.", "", *(f"| {' | '.join(line)} |" for line in lines)])


def _cells(row: dict[str, Any]) -> list[object]:
    named = [
        row["what"],
        row["form"],
        row["mode"],
        *(row.get(n, "") for n in ("breaks", "graphs", "recompiles", "limits")),
    ]
    took: list[object] = [row.get("error", ""), ""]
    if "error" not in row:
        took = [row.get("ms", ""), " to ".join(map(str, row.get("spread", ())))]
    skips = "; ".join([str(row.get("skips", "")), *row["reasons"]])
    recorded = [row.get(n, "") for n in ("recorded", "again", "first_s")]
    return [*named, skips, *recorded, *took, row.get("off", "")]


def main() -> None:
    """Patch, measure or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("patch", "measure", "write", "work"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--nanovlm", type=Path)
    parser.add_argument("--document", type=Path)
    parser.add_argument("--what", nargs="+", choices=tuple(PLAN), default=list(PLAN))
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--limit", type=float, default=450, help="seconds that measuring may take, about")
    parser.add_argument("--job", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--kept", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.do == "patch":
        patch(asked.path, asked.nanovlm)
    elif asked.do == "work":
        work(*asked.job, asked.path, asked.tiny, asked.kept)
    elif asked.do == "write":
        from tables import put

        put(asked.document, "static graphs", table_of(asked.path.read_text(encoding="utf-8"), asked.what))
    else:
        lines = []
        for row in measure(asked.path.resolve(), asked.what, asked.tiny, asked.limit):
            lines.append(json.dumps(row))
            print(lines[-1], flush=True)
        print(f"\n{table_of(chr(10).join(lines), asked.what)}")


if __name__ == "__main__":
    main()
