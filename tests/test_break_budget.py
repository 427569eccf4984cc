"""Budgets of cases and tests: what is beyond one, what a check says of it, and the pytest plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from toy import RULES

from patcher import cli
from patcher.measuring import lock
from patcher.measuring.lock import KINDS, Budget, Event, Excess, Lock, LockError, beyond, told

ROOT = Path(__file__).resolve().parent.parent
BREAK = Event("breaks", "net.py:7", "forward", "a print")
AGAIN = Event("recompiles", "net.py:5", "forward", "size of x: 2, actual 3")


def budget(*events: Event, operators: int = 20, **counts: int) -> Budget:
    return Budget({**dict.fromkeys(KINDS, 0), **counts}, operators, events, "2.13.0", "aot_eager")


WAS = budget(BREAK, AGAIN, breaks=1, recompiles=1, graphs=2)


@pytest.mark.parametrize(
    ("now", "excess"),
    [
        (WAS, []),
        (budget(breaks=0, recompiles=1, graphs=1), []),
        # lines move, sizes are others
        (replace(WAS, events=(replace(BREAK, where="net.py:9"), replace(AGAIN, reason="size of x: 3, actual 4"))), []),
        (
            budget(BREAK, replace(BREAK, where="net.py:8", reason="a log"), breaks=2, graphs=2),
            [Excess("breaks", 1, 2, (replace(BREAK, where="net.py:8", reason="a log"),))],
        ),
        # one more of the same kind: each of them may be the new one
        (
            budget(BREAK, replace(BREAK, where="net.py:8"), breaks=2),
            [Excess("breaks", 1, 2, (BREAK, replace(BREAK, where="net.py:8")))],
        ),
        # another one in the place of the old one costs as much
        (budget(replace(BREAK, function="step"), breaks=1), []),
        (budget(graphs=3), [Excess("graphs", 2, 3)]),
        (budget(dropped_frames=1), [Excess("dropped_frames", 0, 1)]),  # which breaks no more
        (budget(limit_hits=1), [Excess("limit_hits", 0, 1)]),
        (budget(cudagraph_skips=1), [Excess("cudagraph_skips", 0, 1)]),
        (budget(operators=9), [Excess("operators", 20, 9)]),  # nearly nothing is compiled
        (budget(operators=11), []),
    ],
)
def test_beyond(now: Budget, excess: list[Excess]) -> None:
    assert beyond(WAS, now) == excess


def test_told() -> None:
    more = [Excess("breaks", 0, 3, (replace(BREAK, count=3),)), Excess("limit_hits", 0, 1), Excess("operators", 20, 0)]
    assert told("tiny", more) == [
        "tiny: breaks 0 -> 3",
        "  net.py:7: a print (in forward), 3 times",
        "tiny: limit hits 0 -> 1",
        "tiny: operators 20 -> 0: less is compiled",
    ]


def test_a_lock_is_written_and_read(tmp_path: Path) -> None:
    file = tmp_path / lock.FILE
    assert lock.read(file) == Lock()
    held = Lock({"b": WAS, "a": replace(WAS, case="cases/a.py", paths=("net",))}, {"t.py::é": budget()})
    lock.write(file, held)
    assert lock.read(file) == held
    first = file.stat().st_mtime_ns, file.read_text()
    lock.write(file, Lock(dict(reversed(held.cases.items())), held.tests))
    assert (file.stat().st_mtime_ns, file.read_text()) == first  # what is the same is not written again
    assert [path.name for path in tmp_path.iterdir()] == [lock.FILE]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "is no lock: no JSON"),
        ("[]", "is no lock of this version (schema 1)"),
        ('{"schema": 2}', "is no lock of this version (schema 1)"),
        ('{"schema": 1, "cases": {"a": {"breaks": 1}}}', "is damaged"),
        ('{"schema": 1, "cases": []}', "is damaged"),
    ],
)
def test_what_is_no_lock(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / lock.FILE).write_text(text)
    with pytest.raises(LockError, match=lock.FILE) as raised:
        lock.read(tmp_path / lock.FILE)
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


NET = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        x = x * 2
        {}
        return x + 1
"""
CLEAN, BROKEN = NET.format("x = torch.where(x.sum() > 0, x, -x)"), NET.format("x = x if x.sum() > 0 else -x")
CASE = "import torch\nfrom net import Net\n\n\ndef build(): return Net()\n\n\ndef calls(): return [(torch.ones(2),)]\n"
Tool = Callable[..., tuple[int, str, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("net.py", CLEAN), ("case.py", CASE), ("pyproject.toml", "")):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tool(project: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = cli.main(RULES, [*arguments, "net.py"])
        return (status, *capsys.readouterr())

    return run


@pytest.mark.slow
@pytest.mark.usefixtures("one_parent")
def test_a_case_is_held_to_its_budget(tool: Tool, project: Path) -> None:
    check = ("check", "--case", "case.py")
    status, _, err = tool(*check)
    assert (status, "--case: case: no budget in fix-compile.lock; --lock records it" in err) == (2, True)
    status, out, _ = tool(*check, "--lock")
    assert (status, out) == (
        0, "no findings in 1 file\ncase: 0 breaks, 0 recompiles, 1 graph recorded in fix-compile.lock\n"
    )  # fmt: skip
    assert json.loads((project / lock.FILE).read_text())["cases"]["case"]["paths"] == ["net.py"]
    assert tool(*check)[:2] == (
        0, "no findings in 1 file\ncase: within its budget: 0 breaks, 0 recompiles, 1 graph\n"
    )  # fmt: skip
    (project / "net.py").write_text(BROKEN)
    status, out, _ = tool(*check)
    assert status == 1
    assert out.startswith("case: breaks 0 -> 1 (beyond its budget in fix-compile.lock)\n  net.py:8: ")
    assert "(in forward)\ncase: graphs 1 -> 2 (beyond" in out
    out = tool(*check, "--format", "github", "-q")[1]
    assert "::error file=net.py,line=8,title=break budget::case: breaks 0 -> 1" in out
    tool(*check, "--lock", "-q")
    (project / "net.py").write_text(CLEAN)
    status, out, _ = tool(*check)
    assert (status, "better than its budget: breaks 1 -> 0, graphs 2 -> 1; --lock records it" in out) == (0, True)
    (project / "case.py").write_text(CASE.replace("ones(2)", "none(2)"))
    status, _, err = tool(*check)
    assert status == 2
    assert "error: --case: case: eager: does not run: case: calls() raised AttributeError: " in err.splitlines()[-1]


def test_options_of_budgets(tool: Tool) -> None:
    assert "--lock goes with --test" in tool("fix", "--lock")[2]
    assert "--verify-only counts a case: --case names it" in tool("check", "--lock")[2]
    assert "--patch goes with --test" in tool("check", "--case", "case.py", "--patch", "x")[2]
    assert "No such option" in tool("diagnose", "--case", "case.py", "--lock")[2]


TESTS = """import sys

import torch
from net import Net


def test_budget(compile_budget):
    compile_budget(Net(), [(torch.ones(2),), {"x": torch.ones(2)}, lambda net: net(torch.ones(2))])
    compile_budget(Net(), [((torch.ones(2, requires_grad=True),), {})], train=True)


def test_a_call_that_is_none(compile_budget):
    compile_budget(Net(), [torch.ones(2)])


def test_what_is_left_behind():
    import logging

    assert not {"patcher", "rules", "worker"} & set(sys.modules)
    assert not [h for h in logging.getLogger("torch").handlers if type(h).__name__ == "Listener"]
    assert torch.compile(Net(), backend="eager")(torch.ones(2)).tolist() == [3.0, 3.0]


def test_switched_off(compile_budget, monkeypatch):
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    compile_budget(Net(), [(torch.ones(2),)])
"""


def pytest_run(folder: Path, *options: str) -> str:
    """What pytest says there, with our plugin and no other."""
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "fix_compile_pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    return done.stdout + done.stderr


@pytest.mark.slow
def test_tests_and_cases_in_pytest(project: Path) -> None:
    (project / "test_net.py").write_text(TESTS)
    recorded = pytest_run(project, "--update-compile-budget")
    assert "torch.compile is switched off here" in recorded
    assert "compile_budget: a call is a Tensor; write (args, kwargs), a tuple of arguments" in recorded
    assert "2 failed, 2 passed" in recorded
    held = lock.read(project / lock.FILE)
    assert [(name, b.counts["graphs"]) for name, b in held.tests.items()] == [
        ("test_net.py::test_budget", 1), ("test_net.py::test_budget (2)", 1)
    ]  # fmt: skip
    missing = replace(WAS, case="gone.py", paths=("net.py",))
    lock.write(project / lock.FILE, replace(held, cases={"gone": missing}))
    (project / "net.py").write_text(BROKEN)
    (project / "conftest.py").write_text("def pytest_runtest_setup(item): item.funcargs.items()\n")  # as plugins do
    out = pytest_run(project, "--compile-budget", "-k", "test_budget or gone")
    assert "test_net.py::test_budget: breaks 0 -> 1\n  net.py:8: " in out
    assert "gone.py: there is no such file" in out
    assert "2 failed" in out


def test_a_run_of_pytest_without_budgets(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text("import sys\ndef test_it(): assert 'torch' not in sys.modules\n")
    assert "1 passed" in pytest_run(tmp_path)
    assert f"there is no {tmp_path / lock.FILE}: fix-compile check --case CASE --lock" in pytest_run(
        tmp_path, "--compile-budget", "--rootdir", "."
    )
