"""``diagnose --tune``: which ways are tried, which one is recommended, and what a user sees of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fix_compile
from patcher.analysis import Analysis
from patcher.diagnose.diagnostics import TUNE, diagnostics
from patcher.diagnose.places import Places
from patcher.diagnose.prove import Ending, Search
from patcher.diagnose.tuned import COLUMNS, Tried, choice, chosen
from patcher.harness import ways
from patcher.harness.measured import CaseResult, Environment, ProbeResult, Results
from patcher.harness.run import _tail
from patcher.harness.tuning import Tuning
from patcher.harness.ways import FAST_MATH, Facts, Way
from patcher.settings import Settings, TorchSetting
from rules import load_rules

ROOT = Path(__file__).resolve().parent.parent
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
GPU = Facts("cuda", blocks=(("double", 2), ("h.0.single", 4)), marks=(("x", (0,)),), modes=MODES)
CPU = replace(GPU, device="cpu")

# ---------------------------------------------------------------------------------------------------------------------
# Which ways there are.


def names(facts: Facts, **asked: bool) -> list[str]:
    return [way.name for way in ways.chosen(facts, **asked).ways]


def left(facts: Facts, **asked: bool) -> dict[str, str]:
    return dict(ways.chosen(facts, **asked).left)


def test_on_a_gpu_every_preset_is_tried_the_cheap_ones_first() -> None:
    found = names(GPU, fast_math=True)
    assert found[:4] == ["debug", "default", "default, blocks", "dynamic"]
    presets = {"default", "reduce-overhead", "speed", "max-autotune", "max-autotune-no-cudagraphs", "latency", "debug"}
    assert presets | {"fast-math"} == {way.preset for way in ways.chosen(GPU, True).ways}
    assert found.index("max-autotune") > found.index("speed") > found.index("reduce-overhead")
    assert left(GPU, fast_math=True) == {}


def test_only_the_ways_that_are_asked_for_in_their_order() -> None:
    asked = ways.chosen(CPU, only=("speed", "fast-math", "reduce-overhead", "default"))
    assert [way.name for way in asked.ways] == ["speed", "fast-math", "default"]
    assert [name for name, _ in asked.left] == ["reduce-overhead"]
    assert set(ways.known()) == set(names(GPU, fast_math=True))


def test_what_does_nothing_on_a_cpu_is_said_to_do_nothing() -> None:
    told = left(CPU)
    assert told["reduce-overhead"].startswith('CUDA graphs need a GPU: on a CPU mode "reduce-overhead" is "default"')
    assert '"max-autotune-no-cudagraphs" under another name' in told["max-autotune"]
    assert {"speed", "max-autotune-no-cudagraphs"} <= set(names(CPU))


def test_what_does_not_suit_the_case_is_left_out() -> None:
    plain = replace(GPU, blocks=(), marks=())
    assert "no list of two or more modules" in left(plain)["speed, blocks"]
    assert "no dimension" in left(plain)["marked"]
    assert left(plain)["latency"] == "all calls have the same sizes, so it is reduce-overhead"
    assert names(replace(GPU, backend="eager")) == ["debug", "default", "default, blocks", "dynamic", "marked"]


def test_a_setting_or_a_mode_that_this_torch_lacks_is_left_out() -> None:
    assert left(replace(GPU, missing=(FAST_MATH,)), fast_math=True) == {"fast-math": f"this torch has no `{FAST_MATH}`"}
    assert left(replace(GPU, modes=MODES[:-1]))["speed"] == 'this torch has no mode "max-autotune-no-cudagraphs"'


def test_fast_math_only_when_it_is_asked_for() -> None:
    assert not any(way.config for way in ways.chosen(GPU).ways)
    (way,) = (way for way in ways.chosen(GPU, fast_math=True).ways if way.config)
    assert ways.lines(way, GPU) == [f"{FAST_MATH} = True", "model.compile()"]


def test_quick_tries_three() -> None:
    assert names(GPU, quick=True) == ["default", "default, blocks", "reduce-overhead"]
    assert names(CPU, quick=True) == ["default", "default, blocks", "dynamic"]


def test_what_is_written() -> None:
    by_name = {way.name: way for way in ways.chosen(GPU).ways}
    assert ways.lines(by_name["speed"], GPU) == ['model.compile(mode="max-autotune-no-cudagraphs", dynamic=True)']
    assert ways.lines(by_name["reduce-overhead, blocks"], GPU) == [
        'for block in model.double: block.compile(mode="reduce-overhead")',
        'for block in model.get_submodule("h.0.single"): block.compile(mode="reduce-overhead")',
    ]
    function = replace(GPU, module=False)
    assert ways.lines(by_name["dynamic"], function) == ["model = torch.compile(model, dynamic=True)"]
    assert ways.lines(by_name["default"], function) == ["model = torch.compile(model)"]
    assert ways.marking(GPU) == ["torch._dynamo.maybe_mark_dynamic(x, [0])"]


def following(way: Way, facts: Facts = GPU, known: tuple[str, ...] = (), **result: Any) -> list[Way]:
    return ways.following(way, {"status": "ok", **result}, facts, known)


def test_out_of_memory_blocks_only_then_a_lower_limit() -> None:
    speed = next(way for way in ways.chosen(GPU).ways if way.name == "speed")
    (blocks,) = following(speed, status="out-of-memory")
    assert (blocks.name, blocks.scope, blocks.why) == ("speed, blocks", "blocks", "speed ran out of memory")
    (lower,) = following(blocks, status="out-of-memory")
    assert (lower.name, lower.config) == ("speed, blocks, limit 2", (("torch._dynamo.config.recompile_limit", 2),))
    assert following(lower, status="out-of-memory") == []
    (whole,) = following(speed, replace(GPU, blocks=()), status="out-of-memory")
    assert whole.name == "speed, limit 2"
    assert following(speed, known=("speed, blocks",), status="out-of-memory") == []


def test_a_limit_that_is_hit_is_raised() -> None:
    default = Way("default", "default")
    hit = {"counts": {"limit_hits": 1}}
    (first,) = following(default, **hit)
    assert (first.name, ways.lines(first, GPU)[0]) == ("default, limit 64", "torch._dynamo.config.recompile_limit = 64")
    (second,) = following(first, **hit)
    assert (second.name, second.why) == ("default, limit 128", "default, limit 64 hit the recompile limit")
    assert following(second, **hit) == []
    assert following(default, counts={"limit_hits": 0}) == []


def test_a_way_survives_json() -> None:
    for way in ways.chosen(GPU, fast_math=True).ways:
        assert Way.of(json.loads(json.dumps(way.json()))) == way


# ---------------------------------------------------------------------------------------------------------------------
# Which one is recommended.


def times(median: float) -> dict[str, float]:
    return {"median_ms": median, "low_ms": 0.99 * median, "high_ms": 1.01 * median, "min_ms": median, "passes": 9}


EAGER = {"status": "ok", "warm": times(20), "call_ms": times(10), "memory": {"bytes": 5_000_000, "kind": "cuda"}}


def row(name: str = "default", ms: float = 5.0, cold: float = 9.0, **more: Any) -> dict[str, Any]:
    counts = {"graphs": 2, "breaks": 0, "recompiles": 1, "limit_hits": 0, "dropped_frames": 0, "cudagraph_skips": 0}
    equal = {"tree": "original", "kind": "compiled", "mode": name, "bitwise": False, "mae": 1e-7, "max": 1e-6}
    way = Way(name, name, arguments=(("mode", name),)).json()
    return {
        **way,
        "lines": [f'model.compile(mode="{name}")'],
        "status": "ok",
        "message": "",
        "cold_seconds": cold,
        "passes": 1,
        "settled": True,
        "counts": counts,
        "launches": 2,
        "most_recompiles": 1,
        "skips": [],
        "warm": times(2 * ms),
        "call_ms": times(ms),
        "memory": {"bytes": 7_000_000, "kind": "cuda"},
        "second": {"status": "ok", "cold_seconds": cold / 3, "warm": times(2 * ms)},
        "comparison": {**equal, "relative": 1e-6, "worst": "", "finite": 8, "epsilon": 1e-7, "differences": []},
        **more,
    }


def best(*rows: dict[str, Any], goal: str = "latency", unequal: str = "") -> str:
    found = chosen(goal, [Tried(one, ("far",) if one["name"] == unequal else ()) for one in rows], EAGER)
    return found.name if found else ""


def told(*rows: dict[str, Any], **more: Any) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The rows of the table, and all conclusions as one text."""
    facts = {"device": "cuda", "backend": "inductor", "module": True, "blocks": [], "marks": [], "modes": [*MODES]}
    facts |= {"missing": [], "own_compile": False, "limit": "torch._dynamo.config.recompile_limit", "eager": EAGER}
    figures = {"goal": "latency", "facts": facts, "marking": [], "rows": rows, "left": [], "missing": [], **more}
    case = CaseResult("m", 1e-3, False, "cuda", None, (), (), probes=(ProbeResult(TUNE, "ok", figures=figures),))
    environment = Environment("2.13", "3.11", "a GPU", "13.0", "Linux", 1)
    results = Results(
        "t", (), None, None, "", ("default",), "inductor", "bitwise", False, (), environment, "", 1.0, (case,)
    )
    (found,) = diagnostics(results, (TUNE,))
    assert found.status == "ok", found.message
    return found.rows, "\n".join(found.conclusions)


def test_the_best_by_each_goal() -> None:
    quick = row("quick", ms=3, cold=50)
    early = row("early", ms=5, cold=6)
    small = row("small", ms=6, cold=9, memory={"bytes": 6_000_000, "kind": "cuda"}, warm=times(2))
    assert best(quick, early, small) == "quick"
    assert best(quick, early, small, goal="throughput") == "small"
    assert best(quick, early, small, goal="startup") == "early"
    assert best(quick, early, small, goal="memory") == "small"


def test_what_is_not_equal_or_not_compiled_is_never_chosen() -> None:
    assert best(row("near", ms=5), row("far", ms=1), unequal="far") == "near"
    assert best(row("near", ms=5), row("none", ms=1, launches=0)) == "near"
    assert best(row("far", ms=1), unequal="far") == ""


def test_within_noise_the_quicker_first_pass_wins() -> None:
    assert best(row("slow start", ms=5.0, cold=90), row("quick start", ms=5.1, cold=9)) == "quick start"


def test_what_is_no_faster_than_eager_is_not_recommended() -> None:
    assert best(row(ms=9.9)) == ""
    _, conclusions = told(row(ms=9.9))
    assert "No way is faster than eager beyond noise: do not compile this for latency." in conclusions


def test_a_way_that_differs_is_shown_and_not_chosen() -> None:
    far = row("speed", ms=1)
    far["comparison"] = {**far["comparison"], "mae": 0.5}
    rows, conclusions = told(row(), far)
    assert [(cells[0], cells[-1]) for cells in rows] == [("eager", "-"), ("default", "yes"), ("speed", "no")]
    assert conclusions.startswith('For latency, write `model.compile(mode="default")`: a call takes 5 ms')
    assert "`speed` is not what eager computes, and is never chosen: outputs beyond the tolerance" in conclusions


def test_a_first_pass_is_never_called_a_speedup() -> None:
    rows, conclusions = told(row(cold=900.0, second=None))
    assert rows[1][:3] == ("default", "900", "-")
    assert "180" not in conclusions
    assert "(2.00x, both warm)" in conclusions


def written(row: dict[str, Any], **facts: Any) -> list[str]:
    """What the call that compiles becomes, where ``row`` is the best way."""
    known = {"device": "cuda", "backend": "inductor", "module": True, "blocks": [], "marks": [], "modes": [*MODES]}
    known |= {"missing": [], "own_compile": False, "limit": "torch._dynamo.config.recompile_limit", "eager": EAGER}
    figures = {"goal": "latency", "facts": {**known, "model": "net.Net", **facts}, "rows": [row]}
    case = CaseResult("m", 1e-3, False, "cuda", None, (), ())
    return [setting.told for setting in choice(case, ProbeResult(TUNE, "ok", figures=figures))]


def test_what_is_written_of_the_best_way() -> None:
    blocks = {"blocks": [{"path": "h.double", "count": 2}, {"path": "single", "count": 4}]}
    assert written(row()) == ['mode="default"']
    assert written(row(scope="blocks", arguments={}), **blocks) == [
        "for block in model.h.double: block.compile(...)",
        "for block in model.single: block.compile(...)",
    ]
    assert written(row(scope="blocks"), blocks=[{"path": "h.0.single", "count": 2}]) == []
    marks = [{"path": "x", "dims": [0, 2]}]
    limit = {"torch._dynamo.config.recompile_limit": 64}
    assert written(row(marked=True, arguments={}, config=limit), marks=marks) == [
        "recompile_limit = 64",
        "torch._dynamo.maybe_mark_dynamic(x, 0)",
        "torch._dynamo.maybe_mark_dynamic(x, 2)",
    ]
    assert written(row(marked=True), marks=[{"path": "batch['x']", "dims": [0]}]) == []
    assert written(row(config={FAST_MATH: True})) == []


def test_what_is_left_out_is_one_line_for_each_reason() -> None:
    why = f"this torch has no `{FAST_MATH}`"
    _, conclusions = told(row(), left=[{"name": "fast-math", "message": why}])
    assert conclusions.count(why) == 1
    assert f"Warning: `fast-math` left out: {why}." in conclusions


def in_blocks(ms: float, cold: float, **more: Any) -> dict[str, Any]:
    return row("default, blocks", ms, cold, scope="blocks", arguments={"mode": "default"}, **more)


def test_blocks_are_told_beside_the_whole_that_is_compiled_in_the_same_way() -> None:
    _, conclusions = told(row(ms=5, cold=89.2), in_blocks(6.2, 15.8))
    beside = "`default, blocks` beside `default`: a first pass takes 15.8 s, not 89.2 s, a warm one"
    assert f"{beside} 1.24 times as long." in conclusions
    assert "Once warm that is slower" not in conclusions  # what is recommended is the whole
    _, conclusions = told(row(ms=5, cold=89.2), in_blocks(5.05, 15.8))
    assert f"{beside} as long (within noise)." in conclusions
    for other in (row("speed", arguments={"dynamic": True}), row(marked=True), row(status="timeout")):
        assert " beside " not in told(other, in_blocks(6.2, 15.8))[1]


def test_blocks_that_are_slower_once_warm_are_not_recommended_without_saying_so() -> None:
    whole = (row("speed", 4, 99), row(ms=5, cold=89.2))
    _, conclusions = told(*whole, in_blocks(6.2, 15.8), goal="startup")
    slower = "Once warm that is slower: a pass takes 12.4 ms, 1.55 times as long as with `speed`"
    assert slower in conclusions
    assert "the first pass takes 5.27 s in a process that finds the cache" in conclusions
    assert "Once warm" not in told(*whole, in_blocks(4.3, 15.8), goal="startup")[1]  # by less than a tenth
    assert "Once warm" not in told(in_blocks(6.2, 15.8), goal="startup")[1]  # nobody knows


def test_what_ran_with_another_assembler_says_so() -> None:
    assert "TRITON_PTXAS_PATH" not in told(row(assembler=""))[1]
    _, conclusions = told(row(), row("speed", assembler="/torch/bin/ptxas"), row("both", assembler="/torch/bin/ptxas"))
    assert "`speed`, `both` ran with `TRITON_PTXAS_PATH` set to `bin/ptxas` in torch's folder" in conclusions


def test_how_many_recompilations_a_case_needs() -> None:
    hit = {**row()["counts"], "limit_hits": 1}
    limited = row("default, limit 64", config={"torch._dynamo.config.recompile_limit": 64}, most_recompiles=11)
    _, conclusions = told(row(counts=hit, most_recompiles=7), limited)
    assert "The recompile limit is hit with `default`" in conclusions
    assert "this case needs `torch._dynamo.config.recompile_limit = 12` at least" in conclusions
    _, conclusions = told(row())
    assert "a `recompile_limit` of 64 or 128 would change nothing" in conclusions


def test_a_way_for_which_there_was_no_time_says_so() -> None:
    late = {
        **Way("speed", "speed").json(),
        "lines": [],
        "status": "skipped",
        "message": "there was no time left for it",
    }
    rows, conclusions = told(row(), late)
    assert rows[2][:2] == ("speed", "was not run")
    assert "There was no time left for `speed`." in conclusions
    begun = {**late, **Way("marked", "default").json(), "message": "it was ended after 23 s", "seconds": 23.1}
    _, conclusions = told(row(), late, begun)
    assert "There was no time left for `speed`." in conclusions
    assert "`marked`: it was ended after 23 s." in conclusions


def test_a_process_that_the_time_for_all_ran_out_for_was_begun(tmp_path: Path) -> None:
    looked = {"status": "ok", "device": "cpu", "backend": "inductor", "module": True, "blocks": [], "marks": []}
    looked |= {"modes": list(MODES), "missing": [], "own_compile": False, "limit": "x", "eager": {}}
    limits: list[float] = []

    def start(job: dict[str, Any], name: str, seconds: float) -> dict[str, Any]:
        limits.append(seconds)
        return (
            looked if len(limits) == 1 else {"status": "timeout", "message": "", "tail": ["here"], "seconds": seconds}
        )

    asked = {"goal": "latency", "fast_math": False, "quick": False, "seconds": 40.0, "ways": ["speed", "default"]}
    found = Tuning(asked, tmp_path, start, 100.0, {"under": []}).run()
    assert [one["name"] for one in found["rows"]] == ["speed", "default"]
    assert [one["status"] for one in found["rows"]] == ["skipped", "skipped"]
    assert found["rows"][0]["message"] == "it was ended after 30 s, when there was no time left"
    assert found["rows"][0]["tail"] == ["here"]
    limits.clear()
    found = Tuning({**asked, "seconds": 400.0, "ways": ["speed"]}, tmp_path, start, 100.0, {"under": []}).run()
    assert [one["status"] for one in found["rows"]] == ["timeout"]  # its own limit, not that of all


def test_of_a_log_the_innermost_calls_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    stack = [f'  File "deep.py", line {number} in f{number}' for number in range(30)]
    other = ["Timeout (0:00:01)!", "Thread 0x1 (most recent call first):", '  File "idle.py", line 1 in wait', ""]
    log.write_text("\n".join(["noise", *other, "Thread 0x2 (most recent call first):", *stack]))
    assert _tail(log) == ["Thread 0x2 (most recent call first):", *stack[:11]]
    crash = ["Fatal Python error: Segmentation fault", "", "Current thread 0x3 (most recent call first):", *stack]
    log.write_text("\n".join(["noise", *crash, *other, "Extension modules: numpy (total: 1)"]))
    assert _tail(log)[:3] == [crash[0], crash[2], stack[0]]
    log.write_text("\n".join([*other, *map(str, range(40)), "ValueError: no"]))
    assert _tail(log) == [*map(str, range(29, 40)), "ValueError: no"]


# ---------------------------------------------------------------------------------------------------------------------
# As a user calls it.

MODEL = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.layer(x)) + x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Greedy(Net):
    def compile(self, *args, **kwargs):
        raise torch.OutOfMemoryError("CUDA out of memory")


class Fickle(Net):
    def compile(self, *args, **kwargs):
        if kwargs.get("dynamic"):
            raise ValueError("no such size")
        super().compile(*args, **kwargs)

    def forward(self, x):
        x = super().forward(x)
        return x + 1 if torch.compiler.is_compiling() else x
"""
EXACT = """import torch
from torch import nn


class Exact(nn.Module):
    exact = False

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def compile(self, *args, **kwargs):
        self.exact = bool(kwargs.get("dynamic"))
        super().compile(*args, **kwargs)

    def forward(self, x):
        x = self.layer(x)
        return x + 1 if torch.compiler.is_compiling() and not self.exact else x


def train():
    model = torch.compile(Exact())
    return model(torch.ones(2, 8))
"""
PARTS = (
    MODEL.partition("class Greedy")[0]
    + """class Parts(Net):
    def compile(self, *args, **kwargs):
        self.whole = True
        super().compile(*args, **kwargs)

    def forward(self, x):
        x = super().forward(x)
        return x + 1 if torch.compiler.is_compiling() and hasattr(self, "whole") else x


def train(count=None):
    torch.manual_seed(0)
    model = Parts().eval()
    {call}
    return model(torch.linspace(-1, 1, 16).view(2, 8))
"""
)
CASE = """import torch
from net import {name}

def build():
    return {name}().eval()

def calls():
    return [(torch.linspace(-1, 1, 8 * n).view(n, 8),) for n in (2, 3)]
"""
LACKING = """
import torch._inductor.config

torch._inductor.config._config.pop("use_fast_math", None)
"""
WRAPPING = """
train = True

def compile(model, **options):
    model.blocks[0] = torch.compile(model.blocks[0], **options)
"""
Call = Callable[..., str]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], one_parent: None) -> Call:
    """Call ``diagnose --tune`` on a model of that name; what it reports."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL, encoding="utf-8")

    def called(name: str, *options: str, more: str = "", status: int = 0) -> str:
        (tmp_path / "case.py").write_text(CASE.format(name=name) + more, encoding="utf-8")
        words = ["diagnose", "--tune", "--quick", "--backend", "eager", "--case", "case.py", *options, "net.py"]
        monkeypatch.setattr(sys, "argv", [str(ROOT / "fix_compile.py"), *words])
        capfd.readouterr()
        ended = fix_compile.main()
        out, err = capfd.readouterr()
        assert ended == status, err + out
        return " ".join(out.split())

    return called


def test_a_way_that_runs_out_of_memory_is_tried_block_by_block(call: Call) -> None:
    pytest.importorskip("torch")
    report = call("Greedy", "--goal", "memory", "--fast-math", more=LACKING)
    assert "| default | ran out of memory |" in report
    assert "`dynamic, blocks` was tried because dynamic ran out of memory" in report
    assert 'For memory, write `for block in model.blocks: block.compile(backend="eager"' in report
    assert report.count(f"Warning: `fast-math` left out: this torch has no `{FAST_MATH}`.") == 1


def test_a_way_that_fails_and_one_that_differs(call: Call) -> None:
    pytest.importorskip("torch")
    report = call("Fickle", "--goal", "startup")
    assert "`default` is not what eager computes, and is never chosen" in report
    assert "`dynamic`: crashed: ValueError: no such size" in report
    assert 'For startup, write `for block in model.blocks: block.compile(backend="eager")`' in report
    assert "A second model of the same code in the same process, compiled as `default`, compiles nothing" in report


def test_a_forward_of_pytorch_itself_is_wrapped_since_in_place_nothing_would_be_compiled(
    call: Call, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    layers = "super().__init__(*(nn.TransformerEncoderLayer(8, 2, 8, 0.0, batch_first=True) for _ in range(2)))"
    chain = f"{MODEL}\n\nclass Chain(nn.Sequential):\n    def __init__(self):\n        {layers}\n"
    (tmp_path / "net.py").write_text(chain, encoding="utf-8")
    report = call("Chain", "--goal", "startup")
    assert "nothing is compiled" not in report
    assert re.search(r"\| default \|( [^|]+ \|){6} [12] \|", report)  # graphs
    assert "`default, blocks`" in report.partition("left out: the model has no list of two or more modules")[0]


def test_prove_writes_the_way_into_the_call_that_compiles(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(EXACT, encoding="utf-8")
    one_size = "\n\ndef calls():\n    return [(torch.ones(2, 8),)]\n"
    report = call("Exact", "--goal", "startup", "--prove", "--unsafe", "--no-backup", more=one_size)
    assert "No fix earned its place; the call that compiles is given dynamic=True, as" in report
    after = (tmp_path / "net.py").read_text(encoding="utf-8")
    assert after == EXACT.replace("torch.compile(Exact())", "torch.compile(Exact(), dynamic=True)")


AGAIN = """import torch
from torch._dynamo.utils import counters
import net

torch.set_grad_enabled(False)  # as in the case, which is not for training
out = net.train()
graphs = counters["stats"]["unique_graphs"]
torch._dynamo.reset()
with torch.compiler.set_stance("force_eager"):
    assert torch.equal(out, net.train())
print(graphs)
"""


def test_prove_writes_blocks_as_a_loop_which_gives_the_measured_graphs_again(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    whole = 'model.compile(backend="eager")'
    (tmp_path / "net.py").write_text(PARTS.replace("{call}", whole), encoding="utf-8")
    one_size = "\n\ndef calls():\n    return [(torch.linspace(-1, 1, 16).view(2, 8),)]\n"
    report = call("Parts", "--goal", "startup", "--prove", "--unsafe", "--no-backup", more=one_size)
    assert "`model.blocks` are compiled one by one in its place, as --tune has shown" in report
    loop = 'for block in model.blocks:\n        block.compile(backend="eager")'
    assert (tmp_path / "net.py").read_text(encoding="utf-8") == PARTS.replace("{call}", loop)
    again = subprocess.run([sys.executable, "-c", AGAIN], cwd=tmp_path, capture_output=True, text=True, check=True)
    columns = report[report.index("| default, blocks |") :].split("|")
    assert again.stdout.strip() == columns[1 + COLUMNS.index("graphs")].strip()


def test_marks_are_written_before_the_calls_of_the_model(tmp_path: Path) -> None:
    files = {
        "net.py": MODEL.partition("class Greedy")[0],
        "train.py": "import torch\nfrom net import Net\n\n\ndef train(x):\n    model = Net()\n    model.compile()\n"
        "    return model(x)\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = Settings(unsafe=True, models=("net.Net", "net.Other"))
    analysis = Analysis([str(tmp_path)], load_rules(), settings)
    bench = SimpleNamespace(places=Places(analysis.files, str(tmp_path), [str(tmp_path)]))
    search = Search(analysis, settings, bench, {}, None)  # type: ignore[arg-type]
    chosen = [TorchSetting("argument", "mode", "reduce-overhead"), TorchSetting("mark", "x", 0)]
    ending = search.written_too(Ending((), None, ()), chosen)
    assert ending.unwritten == ()
    (changed,) = (file for file in ending.files if file.changed)
    text = changed.after.decode()
    assert 'model.compile(mode="reduce-overhead")' in text
    assert "        torch._dynamo.maybe_mark_dynamic(x, 0)\n    return model(x)\n" in text
    missing = replace(settings, models=("case.Model",))
    other = Search(analysis, missing, bench, {}, None)  # type: ignore[arg-type]
    assert other.written_too(Ending((), None, ()), chosen[1:]).unwritten == (chosen[1],)


def test_on_another_machine_that_has_nothing_of_ours(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    assert "python worker.py plan.json" in call("Net", "--export", "carried", more=WRAPPING)
    hide = "import sys, runpy; sys.modules.update(libcst=None, click=None, patcher=None); sys.argv = sys.argv[1:]; "
    run = [sys.executable, "-c", hide + "runpy.run_path('worker.py', run_name='__main__')", "worker.py", "plan.json"]
    ended = subprocess.run(run, cwd=tmp_path / "carried", capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    report = call("Net", "--import-results", "carried")
    assert "### Ways to compile: case" in report
    assert "the whole compiled by the case's own compile()" in report
    assert "is not what eager computes" not in report  # for all that the wrapped block's parameters have other names


@pytest.mark.parametrize("options", [["--goal", "memory"], ["--export", "x"], ["--fast-math"]])
def test_options_that_go_with_it(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("x = 1\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["fix-compile", "diagnose", *options, "net.py"])
    assert fix_compile.main() == 2
