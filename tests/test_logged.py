"""``diagnose --from-log`` and ``--from-trace``: what torch has logged elsewhere, with causes and fixes here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fix_compile

Call = Callable[..., tuple[int, str, str]]

MODEL = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        y = self.layer(x)
        if y.sum() > 0:
            y = y * 2
        print("seen")
        return y.relu()


torch.manual_seed(0)
model = torch.compile(Net(), backend="eager")
for size in (3, 4, 5):
    model(torch.randn(size, 4))
"""
BREAK = 11
NOTHING = "no graph break, recompile or skip is logged there"
_RANK = "[rank0]:W1129 03:23:11.492000 24829 torch/_inductor/cudagraph_utils.py:261] [0/0] [__perf_hints] "
SKIP = (
    f"{_RANK}skipping cudagraphs due to cpu device (arg0_1). Found from : \n"
    f'{_RANK}   File "/home/else/package/net.py", line 10, in forward\n'
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log and a trace of one run, on "another machine": the project lies elsewhere there."""
    folder = tmp_path_factory.mktemp("logs")
    there = folder / "there" / "package"
    there.mkdir(parents=True)
    (there / "net.py").write_text(MODEL)
    variables = {"TORCH_LOGS": "graph_breaks,recompiles,cudagraphs", "TORCH_TRACE": str(folder / "trace")}
    done = subprocess.run(
        [sys.executable, str(there / "net.py")], env=os.environ | variables, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    (folder / "log.txt").write_text(done.stderr + done.stdout)
    return folder


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Call the program; returns exit status, stdout and stderr."""

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fix-compile", *words])
        capfd.readouterr()
        return (fix_compile.main(), *capfd.readouterr())

    return called


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project: two files of one name."""
    for name in ("package", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "package" / "net.py").write_text(MODEL)
    (tmp_path / "other" / "net.py").write_text("import torch\n")
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def causes(tool: Call, *options: str) -> list[dict[str, Any]]:
    status, out, err = tool("diagnose", *options, "--format", "json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["measured"] is None
    found: list[dict[str, Any]] = report["causes"]
    return found


def test_a_log_and_a_trace_say_the_same(tool: Call, logs: Path, here: Path) -> None:
    of_log = causes(tool, "--from-log", str(logs / "log.txt"), ".")
    of_trace = causes(tool, "--from-trace", str(logs / "trace"), ".")
    keys = ("category", "severity", "where", "function", "reason")
    assert [[c[k] for k in keys] for c in of_log] == [[c[k] for k in keys] for c in of_trace]
    branch = next(cause for cause in of_log if cause["where"] == f"package/net.py:{BREAK}")
    assert (branch["category"], branch["function"], branch["severity"]) == ("graph break", "Net.forward", "medium")
    [fix] = branch["fixes"]
    assert fix["code"] == "FC101"
    assert "+        y = torch.where(y.sum() > 0, y * 2, y)" in fix["diff"]
    sizes = next(cause for cause in of_log if cause["where"] == "package/net.py:9")
    assert sizes["category"] == "dynamic shape"
    assert "`x`" in sizes["title"]


def test_the_report_says_that_nothing_was_run(tool: Call, logs: Path, here: Path) -> None:
    status, out, err = tool("diagnose", "--from-log", str(logs / "log.txt"))  # the whole project
    assert (status, err) == (0, "")
    assert "nothing was run, so times and launches are not known" in " ".join(out.split())
    assert "- Mode: the source and a log\n" in out
    assert "## Performance" not in out
    assert "**Fix**: FC101" in out


def test_a_skipped_cuda_graph_of_a_rank(tool: Call, here: Path) -> None:
    (here / "log.txt").write_text(SKIP)
    [cause] = causes(tool, "--from-log", "log.txt", ".")
    assert cause["category"] == "CUDA graphs"
    assert (cause["reason"], cause["where"].rpartition("/")[2]) == ("cpu device (arg0_1)", "net.py:10")
    assert cause["note"].startswith("Move this tensor to the GPU once")


@pytest.mark.parametrize("text", ["", "step 1: loss 2.5\n" * 3])
def test_a_log_with_nothing_in_it(text: str, tool: Call, here: Path) -> None:
    (here / "log.txt").write_text(text)
    status, out, err = tool("diagnose", "--from-log", "log.txt", ".")
    assert (status, out) == (2, "")
    assert NOTHING in err
    (here / "trace").mkdir()
    status, out, err = tool("diagnose", "--from-trace", "trace", ".")
    assert (status, out) == (2, "")
    assert NOTHING in err


def test_what_needs_a_run_is_refused(tool: Call, here: Path) -> None:
    (here / "log.txt").write_text("")
    status, _, err = tool("diagnose", "--from-log", "log.txt", "--only", "fullgraph", ".")
    assert status == 2
    assert "leave out --case, --only and --trace" in err


def test_one_of_the_two(tool: Call, here: Path) -> None:
    (here / "log.txt").write_text("")
    status, _, err = tool("diagnose", "--from-log", "log.txt", "--from-trace", ".", ".")
    assert status == 2
    assert "--from-log and --from-trace exclude each other" in err
