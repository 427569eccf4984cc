"""A package with a rule, and this tool, each installed from its wheel into an environment of their own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "own_rules"
MODEL = """import gc
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        gc.collect()
        return x * 2
"""


def run(*command: str | Path, cwd: Path, status: int = 0) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout + done.stderr


@pytest.mark.slow
def test_a_rule_from_a_wheel(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--quiet", "--no-deps", "--no-index"]
    wheels = tmp_path / "wheels"
    run(*pip, "wheel", *offline, "--no-build-isolation", "-w", wheels, ROOT, EXAMPLE, cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env", cwd=tmp_path)
    run(*pip, "--python", python, "install", *offline, *wheels.glob("*.whl"), cwd=tmp_path)
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    for name in ("click", "libcst", "yaml", "tomli"):  # what the tool needs; torch is asked for in this interpreter
        spec = importlib.util.find_spec(name)
        assert spec is not None and spec.origin is not None
        (site / name).symlink_to(Path(spec.origin).parent)
    for metadata in Path(str(spec.origin)).parent.parent.glob("libcst-*.dist-info"):
        (site / metadata.name).symlink_to(metadata)
    (tmp_path / "net.py").write_text(MODEL)

    tool = tmp_path / "env" / "bin" / "fix-compile"
    assert "from house-rules 1.0" in run(tool, "rules", "FC9", cwd=tmp_path)
    told = run(tool, "selftest", "--rules", "house-rules", "-j", "1", "--python", sys.executable, cwd=tmp_path)
    assert "FC901  garbage-collection  helps  2 of 2 examples" in told
    run(tool, "fix", "--unsafe", "net.py", cwd=tmp_path)
    assert "if not torch.compiler.is_compiling():\n            gc.collect()\n" in (tmp_path / "net.py").read_text()
