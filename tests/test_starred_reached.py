"""A helper that came with ``from .util import *`` is compiled where what calls it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fix_compile import main

UTIL = """\
import torch


def number(x):
    return x.sum().item()
"""
MODEL = """\
import torch

{}


class Model(torch.nn.Module):
    def forward(self, x):
        return x + number(x)


model = torch.compile(Model())
"""


def checked(folder: Path, line: str, capsys: pytest.CaptureFixture[str]) -> str:
    package = folder / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "util.py").write_text(UTIL)
    (package / "between.py").write_text("from .util import *\n")
    (package / "model.py").write_text(MODEL.format(line))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["fix-compile", "--verify-only", "--unsafe", str(package)])
        main()
    return capsys.readouterr().out


@pytest.mark.parametrize("line", ["from .util import *", "from .between import *", "from .util import number"])
def test_it_is_reached(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "util.py:5" in checked(tmp_path, line, capsys)


def test_another_name_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = checked(tmp_path, "from .between import *\n\n\ndef number(x):\n    return 1", capsys)
    assert "model.py" in told and "util.py:5" not in told
