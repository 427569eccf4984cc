"""What a case compiles by itself, or calls through its own methods, is counted as what is handed to torch.compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from patcher.harness import run as running
from patcher.harness.cases import Case
from patcher.harness.plan import Options, write

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        return self.inner(x).relu()

    def generate(self, x):
        for _ in range(3):
            x = self(x)
        return x


def build():
    return {build}


def calls():
    return [{call}]
"""
SWEEP = "lambda model: sum(torch.compile(lambda t: t * 2, {options})(torch.ones(4)) for _ in range(2))"


def counted(folder: Path, build: str, call: str) -> dict[str, Any]:
    (folder / "case.py").write_text(NET.format(build=build, call=call))
    options = Options(base=str(folder), quick=True, backend="eager", counting=True, seconds=100)
    [case] = running.run(write(folder / "work", (), [Case("inside", str(folder / "case.py"))], options))["cases"]
    [variant] = [one for one in case["variants"] if one["kind"] == "compiled"]
    assert variant["status"] == "ok", variant["message"]
    return variant


@pytest.mark.parametrize("call", ["lambda model: model.generate(torch.ones(1, 4))", "(torch.ones(1, 4),)"])
def test_methods_that_call_the_model_run_compiled(one_parent: None, tmp_path: Path, call: str) -> None:
    variant = counted(tmp_path, "Net()", call)
    assert variant["launches"] == (3 if "generate" in call else 1)


@pytest.mark.parametrize("options", ["", "fullgraph=True", "backend='inductor'"])
def test_what_the_case_compiles_itself_takes_the_backend_that_counts(
    one_parent: None, tmp_path: Path, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CC", "CXX", "PATH"):  # with inductor this would end in an error
        monkeypatch.setenv(name, "/nowhere")
    variant = counted(tmp_path, "Net()", SWEEP.format(options=options))
    assert variant["counts"]["graphs"] >= 1
