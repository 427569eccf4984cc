"""The harness is lied to, from the command line on: each wrong rewrite gets its verdict, and nothing is written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lies import Lie

from patcher import cli
from patcher.harness import processes
from patcher.harness import run as running
from patcher.measuring import measure

torch = pytest.importorskip("torch")

from jobs import CASE, Jobs  # noqa: E402

from patcher.harness.differences import compare  # noqa: E402

MEASURE = ("--test", "--case", "m.py", "--quick", "--backend", "eager")
MODEL = """\
import os
import time

import torch
from torch import nn


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *failure):
        return False


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(8, 8)
        {init}

    def forward(self, x):
        {forward}

    def spare(self, x):
        return x + 1


def build():
    return Model()


def calls():
    return [(torch.randn(4, 8),), (torch.randn(4, 8),)]


train = {train}
"""


@dataclass(frozen=True)
class Planted:
    """A lie in a model that has ``forward`` (and this in ``__init__``), and what the harness has to say to it."""

    before: str
    after: str
    status: str
    reason: str
    forward: str = "return self.line(x)"
    init: str = "self.passes = 0"
    train: bool = False
    options: tuple[str, ...] = ()


LIES = {
    "a wrong arm of where": Planted(
        "return torch.where(y > 0, y, -y)",
        "return torch.where(y > 0, y, y)",
        "different",
        "patched eager: outputs not bitwise equal (MAE 0.",
        "y = self.line(x)\nreturn torch.where(y > 0, y, -y)",
    ),
    "a gradient of NaN": Planted(
        "return y.relu()",
        "return y.relu() + (y - y).sqrt()",
        "different",
        "patched eager: call 1 gradient of line.weight: NaN in 64 elements where the original has none",
        "y = self.line(x)\nreturn y.relu()",
        train=True,
    ),
    "a frame that is dropped": Planted(
        "print('first')\ny = self.line(y).relu()\nprint('second')",
        "with Quiet():\n    print('first')\n    y = self.line(y).relu()",
        "worse",
        "dropped frames 0 -> ",
        "y = self.line(x).tanh()\nprint('first')\ny = self.line(y).relu()\nprint('second')\nreturn self.line(y)",
    ),
    "a forward that is not compiled": Planted(
        "return self.line(x)",
        "return torch.compiler.disable(self.line)(x)",
        "worse",
        "graph launches 2 -> 0: nothing is compiled",
    ),
    "a hang": Planted(
        "return self.line(x)",
        "time.sleep(600)\nreturn self.line(x)",
        "failed",
        "patched eager: hung (time limit): did not end within 12 seconds",
        options=("--time-limit", "12"),
    ),
    "memory that is eaten": Planted(
        "return self.line(x)",
        "eaten = [torch.zeros(2**26) for _ in range(32)]\nreturn self.line(x)",
        "failed",
        "patched eager: ran out of memory: ",
        options=("--memory-limit", "2"),
    ),
    "an exit": Planted(
        "return self.line(x)",
        "os._exit(0)",
        "failed",
        "patched eager: ended without a result: ended by itself with exit status 0",
    ),
    "a lie that shows only when it is compiled": Planted(
        "return self.line(x)",
        "return self.line(x) + torch.compiler.is_compiling()",
        "different",
        "patched compiled (default): outputs beyond the tolerance of 0.001 (MAE 1, max 1, ",
    ),
    "a lie where only compiled code runs": Planted(
        "if torch.compiler.is_compiling():\n    x = x + 1",
        "if torch.compiler.is_compiling():\n    x = x + 2",
        "different",
        "patched compiled (default): outputs beyond the tolerance of 0.001 (MAE ",
        "if torch.compiler.is_compiling():\n    x = x + 1\nif torch.compiler.is_compiling():\n    x = x - 1\n"
        "return self.line(x)",
    ),
    "a lie that shows only in the second pass": Planted(
        "self.passes += 1",
        "self.passes += 1\nx = x + (self.passes > 2)",
        "different",
        " (repeated, pass 2) output)",
        "self.passes += 1\nreturn self.line(x)",
    ),
    "code that no call reaches": Planted(
        "return x + 1",
        "return x + 2",
        "unproven",
        "none of the 1 changed places ran: m.py:26",
    ),
}


@pytest.fixture
def tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], one_parent: None
) -> Callable[..., Any]:
    """Run a command line with a lying rule where there is nothing but ``m.py``; exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fix-compile"])

    def call(lie: Lie, *arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = cli.main([lie], arguments)
        return (status, *capfd.readouterr())

    return call


def source(planted: Planted) -> str:
    def indented(text: str) -> str:
        return text.replace("\n", "\n        ")

    return MODEL.format(init=indented(planted.init), forward=indented(planted.forward), train=planted.train)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_found_out(name: str, tool: Callable[..., Any], tmp_path: Path) -> None:
    planted = LIES[name]
    (tmp_path / "m.py").write_text(source(planted))
    before = tree(tmp_path)
    lie = Lie(planted.before, planted.after)
    status, out, err = tool(lie, *MEASURE, *planted.options, "--format", "json", "m.py")
    (verdict,) = json.loads(out)["verdicts"]
    assert (status, verdict["status"]) == (1, planted.status), verdict
    assert any(planted.reason in reason for reason in verdict["reasons"]), verdict
    assert err.endswith("not equivalent: nothing was changed\n")
    assert tree(tmp_path) == before


HONEST = Planted(
    "if y.sum() > 0:\n    y = y + 1",
    "y = torch.where(y.sum() > 0, y + 1, y)",
    "equivalent",
    "",
    "y = self.line(x)\nif y.sum() > 0:\n    y = y + 1\nreturn y",
)


@pytest.fixture(scope="module")
def measured() -> list[dict[str, object]]:
    """What was measured of the honest rewrite, once for all tests."""
    return []


@pytest.fixture
def honest(
    tool: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: list[dict[str, object]]
) -> Callable[..., tuple[int, str, str]]:
    """Run a command line with the honest rewrite; ``meanwhile`` is done when the measurement has ended."""
    run = measure.run
    (tmp_path / "m.py").write_text(source(HONEST))

    def call(*arguments: str, meanwhile: Callable[[], object] = lambda: None) -> tuple[int, str, str]:
        def once(*plan: Any) -> dict[str, object]:
            measured[:] = measured or [run(*plan)]
            meanwhile()
            return measured[0]

        monkeypatch.setattr(measure, "run", once)
        answer: tuple[int, str, str] = tool(Lie(HONEST.before, HONEST.after), *arguments)
        return answer

    return call


@pytest.mark.slow
def test_a_right_rewrite_is_applied_and_taken_back(honest: Callable[..., Any], tmp_path: Path) -> None:
    before = (tmp_path / "m.py").read_bytes()
    status, out, _ = honest(*MEASURE, "m.py")
    assert status == 0, out
    assert "| 1 -> 0 " in out  # breaks
    assert "\nequivalent: the patch is applied\n" in out
    assert (tmp_path / "m.py").read_bytes() == before.replace(
        b"        if y.sum() > 0:\n            y = y + 1\n", b"        y = torch.where(y.sum() > 0, y + 1, y)\n"
    )
    assert honest("restore")[0] == 0
    assert (tmp_path / "m.py").read_bytes() == before


@pytest.mark.slow
def test_a_dry_run_leaves_the_tree(honest: Callable[..., Any], tmp_path: Path) -> None:
    before = tree(tmp_path)
    status, out, _ = honest(*MEASURE, "--dry-run", "m.py")
    assert (status, out.splitlines()[-1]) == (0, "equivalent; nothing was changed, as --dry-run asks")
    assert tree(tmp_path) == before


@pytest.mark.slow
def test_a_file_that_was_edited_meanwhile_is_left_alone(honest: Callable[..., Any], tmp_path: Path) -> None:
    status, out, err = honest(*MEASURE, "m.py", meanwhile=lambda: (tmp_path / "m.py").write_text("mine = 1\n"))
    assert status == 2
    assert "equivalent, but not all was written" in out
    assert "m.py: error: " in err
    assert (tmp_path / "m.py").read_text() == "mine = 1\n"


COMPILED_ALONE = "if torch.compiler.is_compiling():\n    {}"
CHECK = "if y.isnan().any():\n        raise ValueError('not a number')"


@pytest.mark.slow
def test_what_only_compiled_code_runs_has_run(tool: Callable[..., Any], tmp_path: Path) -> None:
    before, after = (COMPILED_ALONE.format(check) for check in (CHECK, "torch._assert_async(~y.isnan().any())"))
    planted = Planted(before, after, "equivalent", "", f"y = self.line(x)\n{before}\nreturn y")
    (tmp_path / "m.py").write_text(source(planted))
    status, out, _ = tool(Lie(planted.before, planted.after), *MEASURE, "--dry-run", "--format", "json", "m.py")
    (verdict,) = json.loads(out)["verdicts"]
    notes = [note for note in verdict["notes"] if " is slower: " not in note]  # a busy machine says nothing of what ran
    assert (status, verdict["status"], notes) == (0, "equivalent", []), verdict


INVALID = {
    "calls() raises": (
        "return [(torch.randn(4, 8)",
        "raise KeyError('x')\n    return [(torch.randn(4, 8)",
        "calls() raised KeyError",
    ),
    "no model is built": ("return Model()", "return None", "build() must return a model, not NoneType"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INVALID)
def test_a_case_that_is_wrong(name: str, tool: Callable[..., Any], tmp_path: Path) -> None:
    right, wrong, reason = INVALID[name]
    text = source(HONEST).replace(right, wrong)
    (tmp_path / "m.py").write_text(text)
    before = tree(tmp_path)
    status, out, err = tool(Lie(HONEST.before, HONEST.after), *MEASURE, "--format", "json", "m.py")
    (verdict,) = json.loads(out)["verdicts"]
    assert (status, verdict["status"], len(verdict["reasons"])) == (2, "invalid", 1)
    assert reason in verdict["reasons"][0]
    assert err.endswith("a case failed: nothing was changed\n")
    assert "Traceback" not in err
    assert tree(tmp_path) == before


# Smaller ones: two eager jobs, and what is different between them by name.

SMALL = """\
from collections import namedtuple

Pair = namedtuple("Pair", "a b")


class Slot:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.count = 0
        INIT

    def forward(self, x, known):
        y = self.line(x)
        FORWARD


def build():
    return Model()


def calls():
    return [(torch.ones(2, 4, requires_grad=True), {"n": 0}), (torch.ones(2, 4), {"n": 0})]
"""
RETURNED = {
    "a tuple without names": ("Pair(y, 1)", "(y, 1)", "call1 output.type: 'Pair' became 'tuple'"),
    "a list": ("(y, 1)", "[y, 1]", "call1 output.type: 'tuple' became 'list'"),
    "what a generator gives": ("(n for n in [1, 2])", "(n for n in [1, 3])", "call1 output[1]: 2 became 3"),
    "the values of a dict": ("{1: 2}.values()", "{1: 3}.values()", "call1 output[0]: 2 became 3"),
    "a slot": ("Slot(1)", "Slot(2)", "call1 output.held: 1 became 2"),
    "a dense tensor": ("y.to_sparse()", "y", "call1 output.layout: is missing"),
    "an array": ("y.detach()", "y.detach().numpy()", "call1 output.type: is new"),
    "the model's own weights": (
        "self.line.weight.clone()",
        "self.line.weight",
        "call1 aliasing: none became output with model.line.weight",
    ),
    "a draw too many": ("y", "[y, torch.rand(1)][0]", "in eager mode random state after call 1: "),
    "no gradient": ("y, y * 2", "y, y.detach() * 2", "call1 output[1].requires_grad: is missing"),
    "no gradient for an argument": ("y", "self.line(x.detach())", "call1 gradient of argument[0][0]: "),
    "a number in an argument": ("known.update(n=1)", "known.update(n=2)", "call1 argument[0][1].n: 1 became 2"),
    "another count": (
        "setattr(self, 'count', 1)",
        "setattr(self, 'count', 2)",
        "in eager mode attribute count: 1 became 2",
    ),
    "another dtype": ("y", "y.double()", "call1 output: float32 (2, 4) became float64 (2, 4)"),
    "a copy in place of a view": (
        "y, y.view(4, 2)",
        "y, y.view(4, 2).clone()",
        "call1 aliasing: output[0] with output[1] became none",
    ),
    "another training mode": ("y", "[y, self.eval()][0]", "in eager mode attribute training: "),
}
BUFFER = "self.register_buffer('mask', torch.ones(2))"
ROWS = "(y * torch.tensor([[1.0], [2.0]]))"
BUILT = {
    "other values": (BUFFER, "self.register_buffer('mask', torch.zeros(2))", "mask has other values"),
    "a buffer that is gone": (BUFFER, "self.mask = torch.ones(2)", "mask is gone"),
    "a parameter": (BUFFER, "self.mask = nn.Parameter(torch.ones(2))", "mask was a buffer and is a parameter"),
    "a frozen parameter": (
        "pass",
        "self.line.bias.requires_grad_(False)",
        "line.bias was a parameter and is a frozen parameter",
    ),
    "a buffer that is not saved": (
        BUFFER,
        "self.register_buffer('mask', torch.ones(2), persistent=False)",
        "mask was a buffer and is a buffer that is not saved",
    ),
    "another order": (
        "self.a = nn.Parameter(torch.ones(2)); self.b = nn.Parameter(torch.ones(2))",
        "self.b = nn.Parameter(torch.ones(2)); self.a = nn.Parameter(torch.ones(2))",
        "are in another order",
    ),
}


@pytest.fixture
def differences(jobs: Jobs, tmp_path: Path) -> Callable[[str, str], dict[str, Any]]:
    """What is different between two cases in eager mode."""

    def found(before: str, after: str) -> dict[str, Any]:
        done = [jobs(before), jobs(before, patched={"case.py": CASE + after})]
        variants = [
            {"tree": tree, "kind": "eager", "mode": None, "status": job["status"], "folder": job.folder.name}
            for tree, job in zip(("original", "patched"), done, strict=True)
        ]
        return compare({"variants": variants, "folder": str(tmp_path)})[1]

    return found


def small(init: str = "pass", returned: str = "y", train: bool = False) -> str:
    text = SMALL.replace("INIT", init).replace("FORWARD", f"return {returned}")
    return f"{text}\n\ntrain = {train}\n"


@pytest.mark.parametrize("name", RETURNED)
def test_what_is_returned_or_left_behind_is_not_the_same(name: str, differences: Callable[..., Any]) -> None:
    before, after, told = RETURNED[name]
    train = "gradient" in name
    found = differences(small(returned=before, train=train), small(returned=after, train=train))
    assert any(text.startswith(told.replace("call1", "call 1")) for text in found["differences"]), found


@pytest.mark.parametrize("name", BUILT)
def test_what_is_built_is_not_the_same(name: str, differences: Callable[..., Any]) -> None:
    before, after, told = BUILT[name]
    assert f"weights after build(): {told}" in differences(small(before), small(after))["differences"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(f"{ROWS}.cumsum(0)", f"{ROWS}.roll(1, 0).cumsum(0)", id="a cumsum that is off by one"),
        pytest.param("x.detach().add_(1)", "x.detach().add(1)", id="an argument that is not written to"),
    ],
)
def test_what_has_other_values(before: str, after: str, differences: Callable[..., Any]) -> None:
    found = differences(small(returned=before), small(returned=after))
    assert not found["bitwise"] and found["mae"] > 0.01, found


def test_what_may_be_new(differences: Callable[..., Any]) -> None:
    """A right rewrite may keep something for itself."""
    found = differences(small(), small("self.extra = 1", "[y, setattr(self, 'extra', 2)][0]"))
    assert (found["bitwise"], found["differences"]) == (True, [])


def test_calls_that_are_left_out(differences: Callable[..., Any]) -> None:
    found = differences(small(), small().replace(', (torch.ones(2, 4), {"n": 0})', ""))
    assert found["differences"][0] == "call 2: is missing"


def test_arguments_that_are_only_read_do_not_thin_out_the_error(differences: Callable[..., Any]) -> None:
    text = small().replace('{"n": 0}', "torch.ones(10**5)")
    found = differences(text, text.replace("return y", "return y + 1"))
    assert found["mae"] == pytest.approx(1)


def test_one_wrong_element_of_a_large_gradient(differences: Callable[..., Any]) -> None:
    """Neither element is in the sample, which has every fifth."""
    table = "self.table = nn.Parameter(torch.zeros(2**20 + 1))"
    before, after = (small(table, f"y.detach().sum() + self.table[{place}]", train=True) for place in (6, 7))
    assert differences(before, after)["gradients"]["relative"] > 0.1


PLACES = {
    "a line": ("def used(x):\n    return x", "def used(x):\n    return x + 1", 1),
    "a line of a function that is not called": ("def spare(x):\n    return x", "def spare(x):\n    return x + 1", 0),
    "a decorator": ("def used", "@torch.no_grad()\ndef used", 1),
    "a decorator of a function that is not called": ("def spare", "@torch.no_grad()\ndef spare", 0),
    "a default": ("used(x)", "used(x, y=1)", 1),
    "a default of a function that is not called": ("spare(x)", "spare(x, y=1)", 0),
    "a function in one line": ("short(x): return x", "short(x): return x + 1", 0),
    "a lambda": ("lambda x: x", "lambda x: x + 1", 0),
    "a constant": ("CONSTANT = 1", "CONSTANT = 2", 1),
}
FUNCTIONS = """\
CONSTANT = 1
by_name = lambda x: x


def used(x):
    return x


def spare(x):
    return x


def short(x): return x


def build():
    return used
"""


@pytest.mark.parametrize("name", PLACES)
def test_code_that_is_only_defined_has_not_run(name: str, jobs: Jobs) -> None:
    before, after, executed = PLACES[name]
    text = FUNCTIONS.replace(before, after, 1)
    assert text != FUNCTIONS
    places = jobs(FUNCTIONS, patched={"case.py": CASE + text})["places"]
    assert (places["executed"], places["of"]) == (executed, 1)


def test_a_case_that_compares_nothing(jobs: Jobs) -> None:
    job = jobs("def calls(): return [lambda model: None]\n")
    assert job.failure == ("case-error", "m: the calls return nothing that can be compared, and change nothing")


FLOOD = """\
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1]).parent
os.write(1, b"x" * 10**6)
deadline = time.monotonic() + 30
while os.fstat(1).st_size and time.monotonic() < deadline:
    time.sleep(0.01)
os.write(1, b"last words")
"""


def test_a_flood_of_words_does_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "worker.py").write_text(FLOOD)
    monkeypatch.setattr(running, "HERE", tmp_path)
    monkeypatch.setattr(processes, "LOG_BYTES", 10**5)
    plan = {"base": "", "path": [], "overlay": [], "modes": [], "quick": True, "verbose": False}
    plan |= {"cases": [{"name": "m", "file": "m.py"}], "seconds": 60, "memory": None}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    results = running.run(tmp_path / "plan.json")
    assert results["cases"][0]["variants"][0]["tail"] == ["last words"]
