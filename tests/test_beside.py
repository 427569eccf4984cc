"""Tests, examples and scripts: read for what they say of the code, and left alone unless they are asked for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from toy import RULES

from patcher import cli
from patcher.files.discover import discover
from patcher.patching.runner import run
from patcher.results import FileResult
from patcher.settings import Settings
from rules import load_rules

Run = Callable[..., tuple[int, str, str]]
NAMES = (
    "net.py",
    "tests/parts/net.py",
    "conftest.py",
    "test_net.py",
    "net_test.py",
    "Examples/net.py",
    "scripts/run.py",
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*NAMES, "latest.py", "protests/net.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = slow()\n", encoding="utf-8")
    (tmp_path / "setup.cfg").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def tool(project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setattr(sys, "argv", ["fix-compile"])

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        status = cli.main(RULES, arguments)
        return (status, *capfd.readouterr())

    return call


def worked_on(*paths: str) -> set[str]:
    return {entry.path for entry in discover(paths) if not entry.beside}


def test_by_their_names_below_what_was_named(project: Path) -> None:
    assert worked_on(".") == {"latest.py", "net.py", "protests/net.py"}
    assert worked_on("tests") == {"tests/parts/net.py"}
    assert worked_on("scripts/run.py", "test_net.py") == {"scripts/run.py", "test_net.py"}
    assert worked_on(str(project / "tests")) == {str(project / "tests/parts/net.py")}


@pytest.mark.parametrize("paths", [(".", "tests"), ("tests", "."), (".", "tests/parts/net.py")])
def test_named_beside_the_folder_that_has_it(project: Path, paths: tuple[str, ...]) -> None:
    assert worked_on(*paths) == {"latest.py", "net.py", "protests/net.py", "tests/parts/net.py"}


def test_the_terminal_says_how_many(tool: Run, project: Path) -> None:
    _, out, _ = tool("--verify-only", ".")
    assert {line.partition(":")[0] for line in out.splitlines() if " FC901 " in line} == worked_on(".")
    assert (
        "3 findings: 3 fixable, 0 unsafe, 0 without a fix in 3 files; 6 tests, examples and scripts passed over" in out
    )
    assert "passed over" not in tool("--verify-only", "net.py")[1]
    (project / "below" / "tests").mkdir(parents=True)
    (project / "below" / "tests" / "one.py").write_text("x = slow()\n", encoding="utf-8")
    assert tool("--verify-only", "below")[1] == "no findings in 0 files; 1 test or script passed over (see --all)\n"


def test_all(tool: Run, project: Path) -> None:
    assert "9 findings: 9 fixable" in tool("--verify-only", "--all", ".")[1]
    (project / "pyproject.toml").write_text("[tool.fix-compile]\nall = true\n", encoding="utf-8")
    assert "9 findings: 9 fixable" in tool("--verify-only", ".")[1]


def test_nothing_else_is_written(tool: Run, project: Path) -> None:
    tool(".")
    assert {name for name in NAMES if "fast()" in (project / name).read_text(encoding="utf-8")} == {"net.py"}


def test_reports_for_programs(tool: Run) -> None:
    document = json.loads(tool("--verify-only", "--format", "json", ".")[1])
    assert (document["summary"]["files"], document["summary"]["passed_over"]) == (3, 6)
    assert {file["path"] for file in document["files"]} == worked_on(".")


def test_what_is_wrong_with_them_is_no_failure(tool: Run, project: Path) -> None:
    (project / "tests" / "old.py").write_text("print 'x'\n", encoding="utf-8")
    (project / "tests" / "broken.py").symlink_to("nowhere.py")
    os.mkfifo(project / "tests" / "pipe.py")
    assert tool("--verify-only", "--quiet", ".")[0] == 1
    status, _, err = tool("--verify-only", "--quiet", "--all", ".")
    assert status == 2
    assert "tests/old.py" in err
    assert "tests/broken.py" in err
    assert "tests/pipe.py" in err


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_do_not_depend_on_processes_or_on_earlier_runs(project: Path, jobs: int) -> None:
    kept = project / "kept"

    def results(every: bool, kept: Path | None) -> list[FileResult]:
        return run(["."], RULES, Settings(), jobs=jobs, kept=kept, every=every)

    fresh = results(False, None)
    assert [result.path for result in fresh if result.beside] == [e.path for e in discover(["."]) if e.beside]
    assert [results(False, kept), results(False, kept), results(True, kept)] == [fresh, fresh, results(True, None)]
    assert results(False, kept) == fresh


def test_they_tell_what_is_compiled(tmp_path: Path) -> None:
    """A function that only a script compiles is compiled code."""
    source = "def pick(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n"
    (tmp_path / "net.py").write_text(f"import torch\n\n\n{source}", encoding="utf-8")
    script = "import torch\nfrom net import pick\n\npicked = torch.compile(pick)\n"

    def findings() -> int:
        results = run([str(tmp_path)], load_rules(), Settings(select=("FC101",)), jobs=1, every=False)
        return sum(len(result.patch.found) for result in results if result.patch)

    assert findings() == 0
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "go.py").write_text(script, encoding="utf-8")
    assert findings() == 1
