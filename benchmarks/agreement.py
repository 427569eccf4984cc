"""Count what torch.compile does to a case by other means than the harness, to see whether the two agree.

    python benchmarks/agreement.py --root TREE --case CASE --out FILE [--mode MODE] [--backend NAME]

One file that needs torch, the case (docs/harness.md) and its tree, nothing else of ours. The case runs in a process of
its own, from which each figure is taken in several ways: from the lines that ``TORCH_LOGS`` prints (``text``), from the
file that ``TORCH_TRACE`` writes (``trace``), from Dynamo's counters and compilation metrics, and from the profiler. A
second process asks ``torch._dynamo.explain`` about the first call of the model (not with ``--no-explain``).

``--harness REPORT`` takes what ``fix-compile --test --format json`` printed, and shows its figures beside these.
``--logs FOLDER`` keeps the text, to be read.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

SEED = 20
FEWEST_PASSES, MOST_PASSES = 3, 6
LOGS = "graph_breaks,recompiles,graph_code,cudagraphs,perf_hints"
MARK = "##### "  # what stands before the name of each call in the text

Json = dict[str, Any]

# Lines of the text. Each begins with the date, the place in torch and, for most, the compile id and "[__name]".
PATTERNS = {
    "breaks": r"\[__graph_breaks\] Graph break .*in user code at ",
    "breaks, stack suppressed": r"\[__graph_breaks\] Graph break \(user stack suppressed",
    "breaks outside tracing": r"\[__graph_breaks\] Graph break: torch.compile cannot properly resume",
    "recompiles": r"\[__recompiles\] Recompiling function ",
    "graphs": r"\[__graph_code\] TRACED GRAPH",
    "limit_hits": r"torch\._dynamo hit config\.",
    "ifs of outermost functions": r"\[__graph_breaks\] Graph Break Reason: Data-dependent branching",
    "functions dropped": r"\[__graph_breaks\] Graph Break Reason: .*Skipping the function",
    "rests of functions dropped": r"\[__graph_breaks\] Graph Break Reason: .*skipping the rest of the function",
    "frames dropped outside tracing": r"\[__graph_breaks\] torch.compile will skip tracing the frame",
    "frames dropped for an error": r"(?m)^W.*convert_frame\.py:\d+\] (?:\[\S+\] )?WON'T CONVERT ",
    "cudagraph_skips": r"\[__cudagraphs\] (?:skipping|disabling) cudagraphs?\b",
}
# Breaks that are not in counters["graph_break"].
UNCOUNTED = ["ifs of outermost functions", "functions dropped", "rests of functions dropped"]
DROPPED = [name for name in PATTERNS if "dropped" in name]
GRAPH_LINE = re.compile(r"\[(\d+/\d+)(?:_\d+)?\] \[__graph_code\] (.*)")
# A statement of the outermost graph that is no reading of an attribute or an input.
OPERATOR = re.compile(r' {8}\w+(?:\[.*?\]|: "[^"]*")? [^\w\s]{0,3}= (?!self\.[\w.]+(?:;|$)|[A-Z]\w*(?:;|$))')


# ---------------------------------------------------------------------------------------------------------------------
# In the processes that run the case.


def load(options: argparse.Namespace) -> ModuleType:
    """The case's module. The tree and the case's folder come before what is installed."""
    sys.path[:1] = [str(options.root.resolve()), str(options.case.resolve().parent)]
    spec = importlib.util.spec_from_file_location(options.case.stem, options.case)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[options.case.stem] = module
    spec.loader.exec_module(module)
    return module


class CalledError(Exception):
    """The model is called; the arguments are the call's."""


class Case:
    """A case's model and calls, seeded and placed as docs/harness.md says. One that trains has its own ``loss()``."""

    def __init__(self, module: ModuleType) -> None:
        import torch

        self.module, self.train = module, getattr(module, "train", False)
        dtype = getattr(module, "dtype", None)
        self.place = {
            "device": getattr(module, "device", None),
            "dtype": getattr(torch, dtype) if isinstance(dtype, str) else dtype,
        }
        seed()
        self.model = module.build()
        if isinstance(self.model, torch.nn.Module):
            self.model.to(**self.place)
        self.optimizer = None
        if self.train:
            own = getattr(module, "optimizer", lambda parameters: torch.optim.SGD(parameters, lr=1e-3))
            self.optimizer = own([p for p in self.model.parameters() if p.requires_grad])

    def compiled(self, options: argparse.Namespace) -> Any:
        import torch

        chosen = {"backend": options.backend}
        if options.mode != "default" and options.backend == "inductor":
            chosen["mode"] = options.mode
        own = getattr(self.module, "compile", torch.compile)
        made = own(self.model, **chosen)
        return self.model if made is None else made

    def calls(self) -> list[Callable[[Any], Any]]:
        """The calls, each as a function of the model."""
        from torch import Tensor
        from torch.utils._pytree import tree_map_only

        def place(tensor: Tensor) -> Tensor:
            return tensor.to(**self.place) if tensor.is_floating_point() else tensor.to(device=self.place["device"])

        def function(call: Any) -> Callable[[Any], Any]:
            if callable(call):
                return call
            pair = isinstance(call, tuple) and len(call) == 2 and isinstance(call[1], dict)
            args, kwargs = call if pair else ((), call) if isinstance(call, dict) else (call, {})
            args, kwargs = tree_map_only(Tensor, place, (tuple(args), kwargs))
            return lambda model: model(*args, **kwargs)

        seed()
        made = [function(call) for call in self.module.calls()]
        seed()
        return made

    def step(self, model: Any, call: Callable[[Any], Any]) -> None:
        import torch

        torch.compiler.cudagraph_mark_step_begin()
        with torch.set_grad_enabled(self.train):
            if self.optimizer:
                self.optimizer.zero_grad()
            output = call(model)
            if self.optimizer:
                self.module.loss(output).backward()
                self.optimizer.step()

    def first_arguments(self) -> tuple[Any, Any]:
        """What the model is called with first."""

        def stop(module: Any, *given: Any) -> None:
            raise CalledError(*given)

        hook = self.model.register_forward_pre_hook(stop, with_kwargs=True)
        try:
            self.calls()[0](self.model)
        except CalledError as called:
            return called.args
        finally:
            hook.remove()
        raise RuntimeError("the first call does not reach the model")


def seed() -> None:
    import torch

    random.seed(SEED)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED)
    torch.manual_seed(SEED)


def mark(name: str) -> None:
    sys.stderr.write(f"{MARK}{name}\n")
    sys.stderr.flush()


def run(options: argparse.Namespace) -> Json:
    """Passes over all calls until nothing is compiled any more, and one more under the profiler."""
    import torch
    from torch._dynamo import utils

    utils.set_compilation_metrics_limit(1_000_000)  # the standard keeps the last 64
    case = Case(load(options))
    model = case.compiled(options)

    def one_pass(number: int) -> None:
        for place, call in enumerate(case.calls(), 1):
            mark(f"pass {number} call {place}")
            case.step(model, call)

    known = (-1, -1)
    for number in range(1, MOST_PASSES + 1):
        one_pass(number)
        before, known = known, (len(compilations()), utils.counters["inductor"]["cudagraph_skips"])
        if number >= FEWEST_PASSES and known == before:
            break
    counted = dict(figures_of_dynamo(), passes=number)
    mark("profiled")
    torch._logging.trace_structured("artifact", lambda: {"name": "profiled", "encoding": "string"}, payload_fn=str)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        one_pass(number + 1)
    names = Counter(event.name for event in profile.events())
    counted["regions"] = {name.split()[-1]: n for name, n in names.items() if name.startswith("Torch-Compiled Region")}
    counted["inductor calls"] = sum(n for name, n in names.items() if name.startswith("## Call CompiledFxGraph"))
    counted["backward calls"] = names["CompiledFunctionBackward"]
    counted["environment"] = {
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    return counted


def compilations() -> list[Any]:
    """The metrics of each attempt to compile a frame, without those of backward graphs and of what runs later."""
    from torch._dynamo import utils

    every = utils.get_compilation_metrics()
    return [m for m in every if m.is_forward is not False and not getattr(m, "is_runtime", False)]


def figures_of_dynamo() -> Json:
    from torch._dynamo import utils

    counters, every = utils.counters, compilations()
    at_limit = [m for m in every if m.recompile_reason and m.has_guarded_code is None]
    return {
        "counters": {
            "breaks": sum(counters["graph_break"].values()),
            "graphs": counters["stats"]["unique_graphs"],
            "frames": counters["frames"]["total"],
            "frames ok": counters["frames"]["ok"],
            "resume functions": sum(counters["resumes"].values()),
            "cudagraph_skips": counters["inductor"]["cudagraph_skips"],
        },
        "metrics": {
            "frames": len(every),
            "recompiles": sum(bool(m.recompile_reason) for m in every),
            "graphs": sum(bool(m.graph_op_count) for m in every if m.has_guarded_code),
            "limit_hits": len(at_limit),
            "frames failed": sum(m.fail_type is not None for m in every),
        },
        "operators": {m.compile_id: m.graph_op_count for m in every if m.has_guarded_code and m.graph_op_count},
    }


def explain(options: argparse.Namespace) -> Json:
    """The first call of the model: what explain says of it, and, in the text, what a compiled model does with it."""
    import torch

    case = Case(load(options))
    args, kwargs = case.first_arguments()
    with torch.set_grad_enabled(case.train):
        told = torch._dynamo.explain(case.model)(*args, **kwargs)
        torch._dynamo.reset()
        args, kwargs = case.first_arguments()
        mark("single call")
        case.compiled(argparse.Namespace(backend="eager", mode="default"))(*args, **kwargs)
    ops = [node.op for graph in told.graphs for node in graph.graph.nodes]
    return {
        "graphs": told.graph_count,
        "breaks": told.graph_break_count,
        "break reasons": len(told.break_reasons),
        "operators": told.op_count,
        "operators with methods": sum(op.startswith("call_") for op in ops),
    }


# ---------------------------------------------------------------------------------------------------------------------
# In the process that starts them, which needs no torch.


def started(what: str, options: argparse.Namespace, folder: Path) -> tuple[Json, str]:
    """Run one of the two above in a process of its own: its answer, and the text that it logged."""
    answer, text = folder / f"{what}.json", folder / f"{what}.txt"
    command = [sys.executable, __file__, *sys.argv[1:], "--inner", what, "--answer", str(answer)]
    variables = {
        **os.environ,
        "TORCH_LOGS": LOGS,
        "TORCH_TRACE": str(folder / f"{what}-trace"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / f"{what}-cache"),
        "TRITON_CACHE_DIR": str(folder / f"{what}-cache" / "triton"),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with text.open("w", encoding="utf-8") as stream:
        ended = subprocess.run(command, env=variables, stderr=stream, check=False)
    if ended.returncode:
        sys.exit(f"the case failed:\n{text.read_text(encoding='utf-8')[-3000:]}")
    return json.loads(answer.read_text(encoding="utf-8")), text.read_text(encoding="utf-8")


def counted_lines(text: str) -> dict[str, int]:
    return {name: len(re.findall(pattern, text)) for name, pattern in PATTERNS.items()}


def parts(text: str) -> dict[str, str]:
    """The text by the call in which it was logged."""
    pieces = re.split(rf"^{MARK}(.*)\n", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def operators_in(text: str) -> Counter[str]:
    """How many operators the printed graph of each compile id has."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if graph := GRAPH_LINE.search(line):
            if graph[2] == "TRACED GRAPH":  # after torch._dynamo.reset() an id comes again
                found[graph[1]] = 0
            found[graph[1]] += bool(OPERATOR.match(graph[2]))
    return found


def counted_trace(folder: Path) -> dict[str, int]:
    text = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.log"))
    text = text.partition('{"artifact": {"name": "profiled"')[0]
    return {
        "breaks": text.count('{"artifact": {"name": "dynamo_graph_break_reason"'),
        "recompiles": text.count('{"artifact": {"name": "recompile_reasons"'),
        "graphs": text.count('{"dynamo_output_graph": '),
    }


def count(options: argparse.Namespace, folder: Path) -> Json:
    """Everything that is written to ``--out``."""
    told, text = started("run", options, folder)
    before, _, profiled = text.partition(f"{MARK}profiled\n")
    of_text, of_metrics, regions = operators_in(before), told.pop("operators"), told.pop("regions")
    result: Json = {
        "case": options.case.stem,
        "mode": options.mode,
        "backend": options.backend,
        **told,
        "text": counted_lines(before),
        "text of the first pass": {n: counted_lines(t) for n, t in parts(before).items() if n.startswith("pass 1 ")},
        "text while profiling": {name: n for name, n in counted_lines(profiled).items() if n},
        "trace": counted_trace(folder / "run-trace"),
        "profiler": {
            "regions": sum(regions.values()),
            "launches": sum(n for compile_id, n in regions.items() if compile_id in of_text),
            "operators, by text": sum(n * of_text[compile_id] for compile_id, n in regions.items()),
            "operators, by metrics": sum(n * of_metrics.get(compile_id, 0) for compile_id, n in regions.items()),
        },
        "reasons for skips": Counter(re.findall(r"(?:skipping|disabling) cudagraphs?\b.*", before)),
    }
    if options.explain:
        result["explain"], text = started("explain", options, folder)
        single = parts(text)["single call"]
        result["explain, by text"] = {**counted_lines(single), "operators": sum(operators_in(single).values())}
    return result


def shown(result: Json, harness: Json) -> str:
    """What the harness counted beside what was counted here, as a table."""
    text, trace, profiler = result["text"], result["trace"], result["profiler"]
    counters, metrics = result["counters"], result["metrics"]
    dropped = sum(text[name] for name in DROPPED)
    failed = metrics["frames failed"] - metrics["limit_hits"]
    rows: dict[str, Json] = {
        "breaks": {
            "text": text["breaks"],
            "trace": trace["breaks"],
            "counters": counters["breaks"],
            "counters, and what they leave out": counters["breaks"] + sum(text[name] for name in UNCOUNTED),
        },
        "recompiles": {k: s["recompiles"] for k, s in (("text", text), ("trace", trace), ("metrics", metrics))},
        "graphs": {
            k: s["graphs"] for k, s in (("text", text), ("trace", trace), ("counters", counters), ("metrics", metrics))
        },
        "limit_hits": {"text": text["limit_hits"], "metrics": metrics["limit_hits"]},
        "dropped_frames": {"text": dropped, "metrics, not the rests": failed},
        "launches": {"profiler": profiler["launches"], "inductor calls": result["inductor calls"]},
        "operators": {k: profiler[f"operators, {k}"] for k in ("by text", "by metrics")},
        "cudagraph_skips": {"text": text["cudagraph_skips"], "counters": counters["cudagraph_skips"]},
    }
    lines = ["| figure | harness | counted here |", "|---|---|---|"]
    for name, found in rows.items():
        lines.append(f"| {name} | {harness[name]} | {', '.join(f'{n} ({source})' for source, n in found.items())} |")
    return "\n".join(lines)


def of_harness(report: Path, case: str, mode: str) -> Json:
    """The figures of the compiled original in a report of ``--format json``."""
    told = json.loads(report.read_text(encoding="utf-8"))
    cases = [c for c in told.get("results", told)["cases"] if c["name"] == case]
    wanted = ("original", "compiled", mode)
    found = next(v for c in cases for v in c["variants"] if (v["tree"], v["kind"], v["mode"]) == wanted)
    return {**found["counts"], "launches": found["launches"], "operators": found["operators"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, metavar="TREE")
    parser.add_argument("--case", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--mode", default="default")
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--no-explain", dest="explain", action="store_false")
    parser.add_argument("--harness", type=Path, metavar="REPORT")
    parser.add_argument("--logs", type=Path, metavar="FOLDER")
    parser.add_argument("--inner", choices=("run", "explain"), help=argparse.SUPPRESS)
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner:
        told = run(options) if options.inner == "run" else explain(options)
        options.answer.write_text(json.dumps(told), encoding="utf-8")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.logs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        result = count(options, folder)
    if options.harness:
        result["harness"] = of_harness(options.harness, options.case.stem, options.mode)
        print(shown(result, result["harness"]))
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
