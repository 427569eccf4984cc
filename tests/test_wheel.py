"""What is installed: one module and one private folder, beside projects whose own names are as plain as ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MODEL = """import torch
from torch import nn
from patcher import scale


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            y = x * 2
        else:
            y = x - 1
        return scale(y)
"""
CASE = """import torch
from net import Net
from rules import LENGTHS

def build():
    return Net()

def calls():
    return [(torch.linspace(-1, 1, n),) for n in LENGTHS]
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what is installed from this checkout, and nothing else."""
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-index", "--no-build-isolation", "--target", str(target), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return target


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A model whose project has a module and a package that are called as our engine and our rules are."""
    folder = tmp_path / "project"
    (folder / "rules").mkdir(parents=True)
    (folder / "rules" / "__init__.py").write_text("LENGTHS = (3,)\n", encoding="utf-8")
    (folder / "patcher.py").write_text("def scale(x):\n    return x * 3\n", encoding="utf-8")
    (folder / "net.py").write_text(MODEL, encoding="utf-8")
    (folder / "case.py").write_text(CASE, encoding="utf-8")
    return folder


def call(installed: Path, project: Path, *command: str, status: int = 0) -> str:
    """Run a command in the project, whose modules come first on the path, as ``PYTHONPATH=.`` has it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.curdir, str(installed)]), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *command], cwd=project, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout + done.stderr


def test_the_environment_gets_no_plain_names(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} - {"bin", "__pycache__"}
    assert names == {"fix_compile.py", "fix_compile_pytest.py", "_fix_compile"}
    assert {path.name for path in (installed / "_fix_compile").iterdir()} == {"docs", "patcher", "rules"}


@pytest.mark.parametrize("name", ["patcher", "rules"])
def test_it_is_whole(installed: Path, name: str) -> None:
    """Also what no module imports: workers are started by the path of their file, rules are found in their folder."""
    here, there = (
        {p.relative_to(top) for kind in ("py", "css", "json") for p in (top / name).rglob(f"*.{kind}")}
        for top in (ROOT, installed / "_fix_compile")
    )
    assert there == here


def test_help_names_pages_that_are_installed(installed: Path, project: Path) -> None:
    private = installed / "_fix_compile"
    pages = {p.relative_to(ROOT) for p in (ROOT / "docs").rglob("*") if p.suffix in (".md", ".yml", ".json")}
    assert {p.relative_to(private) for p in private.glob("docs/**/*") if p.is_file()} == pages
    told = call(installed, project, "-m", "fix_compile", "fleet", "--help")
    assert told.endswith(f"\n  More: {private / 'docs' / 'fleet.md'}\n")


def test_its_own_engine_and_rules_come_first(installed: Path, project: Path) -> None:
    script = "import fix_compile, patcher, rules; print(patcher.__file__); print(rules.__file__)"
    private = installed / "_fix_compile"
    expected = [str(private / name / "__init__.py") for name in ("patcher", "rules")]
    assert call(installed, project, "-c", script).splitlines() == expected


@pytest.mark.parametrize("command", [["-m", "fix_compile"], ["SCRIPT"]], ids=["module", "console script"])
def test_it_runs_where_a_project_has_both_names(installed: Path, project: Path, command: list[str]) -> None:
    command = [str(installed / "bin" / "fix-compile") if word == "SCRIPT" else word for word in command]
    assert "FC101" in call(installed, project, *command, "--verify-only", "-j", "2", ".", status=1)
    assert "torch.where" in call(installed, project, *command, "rules", "FC101")
    call(installed, project, *command, "-j", "2", ".")
    assert "torch.where(x.sum() > 0" in (project / "net.py").read_text(encoding="utf-8")
    call(installed, project, *command, "restore")
    assert (project / "net.py").read_text(encoding="utf-8") == MODEL


def test_what_it_suggests_is_called_as_it_was(installed: Path, project: Path) -> None:
    assert "python -m fix_compile restore" in call(installed, project, "-m", "fix_compile", ".")


def test_a_case_is_measured_where_a_project_has_both_names(installed: Path, project: Path) -> None:
    how = ("--test", "--quick", "--backend", "eager", "--case", "case.py")
    call(installed, project, "-m", "fix_compile", *how, "net.py")
    assert "torch.where(x.sum() > 0" in (project / "net.py").read_text(encoding="utf-8")
