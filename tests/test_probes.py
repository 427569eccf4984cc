"""The probes: what they measure on small models, each in a process of its own, and their parts without one."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jobs import CASE, HARNESS, Job, Jobs  # noqa: E402

sys.path.insert(0, HARNESS)  # the worker lies beside the probes, as on a machine that has nothing else of ours
import probes  # noqa: E402

from patcher.harness.passes import ASSEMBLER, one_assembler  # noqa: E402
from patcher.harness.running_case import blocks_of, classes_of, repeated_blocks  # noqa: E402
from patcher.harness.sizes import varying  # noqa: E402
from patcher.harness.trials import Lab  # noqa: E402

_SERVER = """
import gc, json, os, signal, sys, traceback

sys.path.insert(0, sys.argv[1])
import torch, torch._dynamo.guards, torch._inductor.cudagraph_trees
import probes, worker
from _fix_compile_harness import passes

passes.QUICK_SECONDS = 0.0
torch._dynamo.guards.profile_guard_manager = lambda *_: 0.0  # as in dynamo.py
gc.freeze()
for line in sys.stdin:
    spec, log, folder, _, _ = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        out = os.open(log, os.O_WRONLY | os.O_CREAT)
        for number, source in enumerate((os.open(os.devnull, os.O_RDONLY), out, out)):
            os.dup2(source, number)
        try:
            os.chdir(folder)
            sys.argv = ["probes.py", spec]
            probes.main()
        except BaseException:
            traceback.print_exc()
        os._exit(99)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
CLEAN = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, mask=None):
        x = self.layer(x)
        return x if mask is None else x * mask

def build(): return Model()
"""
BRANCH = """
class Model(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        return x

def build(): return Model()
"""
BLOCKS = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.layer(x)) + x

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

def build(): return Model()
"""

Run = Callable[..., Job]


@pytest.fixture(scope="module")
def prober() -> Iterator[subprocess.Popen[str]]:
    """An interpreter that forks for each probe."""
    command = [sys.executable, "-B", "-c", _SERVER, HARNESS]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        yield server


@pytest.fixture
def run(prober: subprocess.Popen[str], tmp_path: Path) -> Run:
    """Runs a probe on a case."""
    jobs = Jobs(prober, tmp_path)

    def probe(name: str, text: str, mode: str = "default", **options: Any) -> Job:
        return jobs(text, "compiled", job={"probe": name, "mode": mode}, **options)

    return probe


def steps(job: Job, setting: str) -> list[int]:
    """The recompilations of each step under a setting that is ok."""
    found = next(s for s in job["settings"] if s["name"] == setting)
    assert found["status"] == "ok", found
    return [step["recompiles"] for step in found["steps"]]


# fullgraph


def test_calls_that_are_captured_whole(run: Run) -> None:
    found = run("fullgraph", CLEAN + "def calls(): return [(torch.ones(2, 4),), (torch.ones(3, 4),)]")
    assert [(c["captured"], c["launches"], c["message"]) for c in found["calls"]] == 2 * [(True, 1, "")]
    assert found["backend"] == "eager"
    assert found["own_compile"] is False


def test_a_break_is_told_with_its_place_and_the_other_calls_go_on(run: Run) -> None:
    text = BRANCH + "def calls(): return [(torch.ones(2),), lambda model: torch.ones(2)]"
    first, second = run("fullgraph", text)["calls"]
    assert (first["captured"], first["launches"], first["seconds"]) == (False, 0, None)
    line = (CASE + BRANCH).splitlines().index("        if x.sum() > 0:") + 1
    assert first["message"].endswith(f" (case.py:{line})")
    assert (second["captured"], second["launches"]) == (True, 0)


def test_in_training_what_breaks_backward_counts_too(run: Run) -> None:
    text = CLEAN + "train = True\ndef calls(): return [(torch.ones(2, 4),)]"
    assert run("fullgraph", text, plan={"backend": "aot_eager"})["calls"][0]["captured"] is True


def test_what_fullgraph_takes_in_by_itself_is_measured(run: Run) -> None:
    found = run("fullgraph", CLEAN)
    assert found["implied"].keys() == {"scalars", "shapes"}
    text = CLEAN.replace("x if mask is None", "x * x.sum().item() if mask is None")
    assert run("fullgraph", text)["calls"][0]["captured"] is found["implied"]["scalars"]


def test_the_case_compiles_as_it_does(run: Run) -> None:
    text = BLOCKS + "def compile(model, **options):\n    model.blocks[0].compile(**options)"
    found = run("fullgraph", text)
    assert found["own_compile"] is True
    assert found["calls"][0]["launches"] == 1


def test_a_wrong_case_is_no_figure(run: Run) -> None:
    found = run("fullgraph", "def compile(model, **options): raise ValueError('no')")
    assert found.failure[0] == "case-error"
    assert "compile() raised ValueError: no" in found.failure[1]


# vary-batch, vary-sequence


def test_chosen_sizes_with_marks_and_without(run: Run) -> None:
    found = run("vary-batch", CLEAN + "def calls(): return [(torch.ones(2, 4),), {'x': torch.ones(2, 4)}]")
    assert found["chosen"] is True
    assert [step["sizes"] for step in found["steps"]] == [[2], [3], [5], [1]]
    assert found["marks"] == [{"path": "x", "dims": [0]}]
    assert found["model"] == "Model"
    assert steps(found, "automatic") == [0, 1, 0, 1]
    assert steps(found, "marked") == [0, 0, 0, 1]
    assert steps(found, "dynamic") == [0, 0, 0, 1]
    assert steps(found, "unbacked") == [0, 0, 0, 0]
    marked = next(s for s in found["settings"] if s["name"] == "marked")
    assert "x.size()[0]" in marked["reasons"][0]["guard"]
    assert marked["again"]["recompiles"] == 0
    assert marked["again"]["launches"] == 4


def test_the_cases_own_calls_come_first_when_they_differ(run: Run) -> None:
    text = CLEAN + "def calls(): return [(torch.ones(1, 4),), (torch.ones(6, 4),), (torch.ones(7, 4),)]"
    found = run("vary-batch", text)
    assert found["chosen"] is False
    assert found["steps"] == [{"call": 2, "sizes": [6]}, {"call": 3, "sizes": [7]}, {"call": 1, "sizes": [1]}]
    assert steps(found, "automatic") == [0, 1, 1]
    assert steps(found, "marked") == [0, 0, 1]


def test_calls_that_differ_in_two_dimensions_are_no_measure_of_one(run: Run) -> None:
    """The first call is resized instead: here its length stays."""
    text = """
    class Model(nn.Module):
        def forward(self, x):
            return x.cumsum(1)

    def build(): return Model()

    def calls(): return [(torch.ones(2, 4),), (torch.ones(3, 6),), (torch.ones(5, 8),)]
    """
    batch, sequence = run("vary-batch", text), run("vary-sequence", text)
    assert (batch["chosen"], batch["also"]) == (True, [])
    assert [step["sizes"] for step in batch["steps"]] == [[2], [3], [5], [1]]
    assert batch["marks"] == [{"path": "x", "dims": [0]}]
    assert [step["sizes"] for step in sequence["steps"]] == [[4], [2], [6], [8]]
    assert sequence["marks"] == [{"path": "x", "dims": [1]}]


def test_tensors_that_only_some_calls_have(run: Run) -> None:
    mask = "{'x': torch.ones(3, 4), 'mask': torch.ones(3, 4)}"
    found = run("vary-batch", CLEAN + f"def calls(): return [(torch.ones(2, 4),), {mask}]")
    assert (found["chosen"], found["marks"]) == (True, [{"path": "x", "dims": [0]}])
    assert steps(found, "automatic") == [0, 1, 0, 1]


def test_what_cannot_be_resized_is_told_with_what_else_differs(run: Run) -> None:
    text = """
    class Model(nn.Module):
        def forward(self, x, mask=None):
            return x.cumsum(1) if mask is None else x * mask

    def build(): return Model()

    def calls():
        return [lambda m, n=n: m(torch.ones(n, 4 * n)) for n in (2, 3)] + [
            lambda m: m(torch.ones(2, 8), mask=torch.ones(2, 8))
        ]
    """
    found = run("vary-batch", text)
    assert found["chosen"] is False
    assert found["marks"] == [{"path": "x", "dims": [0]}]
    assert found["also"] == [{"path": "x", "dims": [1]}, {"path": "mask", "dims": []}]


def test_calls_that_take_the_size(run: Run) -> None:
    text = CLEAN + "def calls(batch=3): return [lambda model: model(torch.ones(2, 4), mask=torch.ones(batch, 1, 4))]"
    found = run("vary-batch", text)
    assert [step["sizes"] for step in found["steps"]] == [[3], [4], [7], [1]]
    assert found["marks"] == [{"path": "mask", "dims": [0]}]
    assert steps(found, "marked") == [0, 0, 0, 1]


def test_marks_reach_what_is_inside_of_arguments(run: Run) -> None:
    text = """
    class Model(nn.Module):
        def forward(self, cache, **more):
            return cache[0]["key"].cumsum(1) * more["scale"]

    def build(): return Model()

    def calls(): return [lambda m, n=n: m([{"key": torch.ones(2, n)}], scale=torch.ones(())) for n in (4, 5, 6)]
    """
    found = run("vary-sequence", text)
    assert found["marks"] == [{"path": "cache[0].key", "dims": [1]}]
    assert (steps(found, "automatic"), steps(found, "marked")) == ([0, 1, 0], [0, 0, 0])
    assert [s["name"] for s in found["settings"]] == ["automatic", "marked", "dynamic"]


def test_functions_with_one_size_only(run: Run) -> None:
    status, message = run("vary-batch", CLEAN + "def calls(): return [lambda model: model(torch.ones(2, 4))]").failure
    assert status == "skipped"
    assert "let calls() take a parameter 'batch'" in message


def test_a_model_of_one_size(run: Run) -> None:
    status, message = run("vary-sequence", CLEAN + "def calls(): return [(torch.ones(2, 4),)]").failure
    assert (status, message) == ("skipped", "m: the model takes its calls with one sequence size only")


def test_a_setting_that_fails_is_a_figure(run: Run) -> None:
    text = """
def compile(model, **options):
    if options.get("dynamic"):
        raise ValueError("never")
    return torch.compile(model, **options)

def calls(): return [(torch.ones(2, 4),)]
"""
    found = run("vary-batch", CLEAN + text)
    told = {s["name"]: (s["status"], s["message"]) for s in found["settings"]}
    assert told["automatic"] == ("ok", "")
    assert told["dynamic"][0] == "case-error"
    assert "compile() raised ValueError: never" in told["dynamic"][1]


def test_marks_are_taken_back(run: Run) -> None:
    text = """
A, B, C = torch.ones(2, 4), torch.ones(3, 4), torch.ones(1, 4)
B.mine = True

def compile(model, **options):
    assert [sorted(vars(x)) for x in (A, B, C)] == [[], ["mine"], []]
    return torch.compile(model, **options)

def calls(): return [(A,), (B,), (C,)]
"""
    found = run("vary-batch", CLEAN + text)
    assert [(s["name"], s["status"]) for s in found["settings"]] == [
        ("automatic", "ok"),
        ("marked", "ok"),
        ("dynamic", "ok"),
        ("unbacked", "ok"),
    ]
    assert (steps(found, "marked"), steps(found, "unbacked")) == ([0, 0, 1], [0, 0, 0])


def test_training_steps_in_several_sizes(run: Run) -> None:
    text = CLEAN + "train = True\ndef calls(): return [(torch.ones(2, 4),)]"
    found = run("vary-batch", text, plan={"backend": "aot_eager"})
    assert steps(found, "marked")[:3] == [0, 0, 0]


def test_steps_are_compared_call_by_call() -> None:
    steps = [[{"x": (2, 16)}, {"x": (2, 1)}], [{"x": (3, 16)}, {"x": (3, 1)}]]
    assert varying(steps) == {"x": [0]}
    assert varying([steps[0]]) == {"x": [1]}
    assert varying([steps[0], steps[1][:1]]) == {"x": [0, 1]}
    assert varying([[{"x": (2,)}], [{"x": (2, 3)}], [{"y": (4,)}]]) == {}
    assert varying([[], []]) == {}


# latency


def test_blocks_share_what_is_compiled(run: Run) -> None:
    found = run("latency", BLOCKS)
    assert found["told"] == "3 x Block in blocks; backend eager"
    whole, blocks = found["settings"]
    assert (whole["name"], blocks["name"]) == ("whole model", "block by block")
    assert whole["status"] == blocks["status"] == "ok"
    assert (whole["first"]["graphs"], whole["settled"]["launches"]) == (1, 1)
    assert (blocks["first"]["graphs"], blocks["settled"]["launches"]) == (1, 3)
    assert whole["first_seconds"] > whole["warm"]["median_ms"] / 1e3 > 0


def test_without_blocks(run: Run) -> None:
    found = run("latency", "")
    assert (found["told"], found["settings"]) == ("", [])


def test_only_the_outermost_lists_of_more_than_layers() -> None:
    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.ModuleList(Own() for _ in range(2))

    class Own(torch.nn.Module):  # type: ignore[misc, name-defined]
        pass

    model = torch.nn.Module()
    model.blocks = torch.nn.Sequential(Block(), Block())
    model.layers = torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(2))
    model.torchs = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(4, 2) for _ in range(2))
    model.mixed = torch.nn.ModuleList([Own(), torch.nn.Linear(1, 1)])
    model.single = torch.nn.ModuleList([Own()])
    model.same = torch.nn.ModuleList(2 * [Own()])
    assert [path for path, _ in repeated_blocks(model)] == ["blocks", "torchs"]
    assert [path for path, _ in repeated_blocks(torch.nn.Sequential(Block(), Block()))] == [""]
    assert repeated_blocks(len) == []
    case: Any = SimpleNamespace(module=SimpleNamespace())
    name = f"{__name__}.test_only_the_outermost_lists_of_more_than_layers.<locals>.Net"
    net = type("Net", (torch.nn.Module,), {"__qualname__": name.removeprefix(f"{__name__}."), "__module__": __name__})()
    net.blocks, net.torchs = torch.nn.ModuleList([Block(), Block()]), model.torchs
    Block.forward = lambda self, x: x
    assert blocks_of(case, net) == [["blocks", name]], "PyTorch's own forward is passed over by block.compile()"
    case.module.compile = print
    assert blocks_of(case, net) == []


def test_a_class_of_the_main_program_is_named_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    big = type("Big", (torch.nn.Module,), {"__module__": "__main__"})()
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/there/train.py", raising=False)
    assert classes_of(big, "case") == ["train.Big"]
    monkeypatch.delattr(sys.modules["__main__"], "__file__")  # python -c
    assert classes_of(big, "case") == ["__main__.Big"]


# ablation


def test_options_of_another_backend(run: Run) -> None:
    told = run("ablation", CLEAN).failure
    assert told == ("skipped", "it is about options of inductor, and the backend is eager")


@pytest.mark.slow
@pytest.mark.long
def test_each_option_turned_over(run: Run) -> None:
    text = CLEAN + "def calls(): return [(torch.ones(2, 4),)]"
    found = run("ablation", text, plan={"backend": "inductor", "seconds": 280})
    names = [s["name"] for s in found["settings"]]
    assert names[0] == names[-1] == "default"
    assert {name.partition("=")[0] for name in names} - {"default"} <= set(probes.ABLATED)
    assert {s["status"] for s in found["settings"]} == {"ok"}
    assert {"epilogue_fusion=False", "max_autotune=True"} <= set(names)
    assert all(s["difference"] < 1e-5 and s["first"]["graphs"] == 1 for s in found["settings"])


@pytest.mark.slow
@pytest.mark.long
def test_a_mode_decides_about_some_options(run: Run) -> None:
    text = CLEAN + "def calls(): return [(torch.ones(2, 4),)]"
    found = run("ablation", text, "max-autotune-no-cudagraphs", plan={"backend": "inductor", "seconds": 280})
    assert not any(s["name"].startswith("max_autotune") for s in found["settings"])


def test_the_largest_difference() -> None:
    nan, one = torch.tensor([float("nan"), 1.0]), torch.ones(2)
    assert probes.largest_difference({"a": one, "b": one}, {"a": one + 2, "b": one - 0.5}) == 2
    assert probes.largest_difference({"a": nan}, {"a": nan}) == 0
    apart = probes.largest_difference({"a": nan, "b": one}, {"a": one, "b": one - 1})
    assert apart is not None
    assert math.isnan(apart)
    assert probes.largest_difference({"a": one}, {"a": torch.ones(3), "b": one}) is None


# All of them.


def test_an_unknown_probe(run: Run) -> None:
    status, message = run("horoscope", CLEAN).failure
    assert status == "skipped"
    assert "'horoscope'" in message
    assert "vary-batch" in message


def test_settings_for_which_there_is_no_time(tmp_path: Path) -> None:
    plan = {"seconds": 100, "backend": "eager", "job": {"folder": str(tmp_path)}}
    lab = Lab(plan, None, None, {})
    assert lab.attempt("first", dict)["status"] == "ok"
    lab._longest = 50.0
    assert lab.attempt("second", dict)["status"] == "ok"
    told = lab.attempt("third", dict, reserved=1)
    assert (told["status"], told["message"]) == ("left out", "there was no time left for it")
    lab.forget()
    assert lab.attempt("fourth", dict, reserved=1)["status"] == "ok"


def test_results_can_be_written_as_json(run: Run) -> None:
    found = run("latency", BLOCKS)
    assert json.loads((found.folder / "result.json").read_text()) == found.told


def test_with_max_autotune_the_process_takes_the_assembler_of_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor.runtime import compile_tasks

    brought = str(tmp_path / "ptxas")
    monkeypatch.setattr(
        compile_tasks, "_set_triton_ptxas_path", lambda: os.environ.update({ASSEMBLER: brought}), raising=False
    )
    monkeypatch.setattr(os, "environ", {**os.environ})
    os.environ.pop(ASSEMBLER, None)
    for mode in (None, "default"):
        one_assembler(mode)
    assert ASSEMBLER not in os.environ
    one_assembler("max-autotune-no-cudagraphs")
    assert os.environ[ASSEMBLER] == brought
    os.environ[ASSEMBLER] = "own"
    one_assembler("max-autotune")
    assert os.environ[ASSEMBLER] == "own"
    os.environ.pop(ASSEMBLER)
    monkeypatch.delattr(compile_tasks, "_set_triton_ptxas_path")
    one_assembler("max-autotune")  # a torch that brings none
    assert ASSEMBLER not in os.environ
