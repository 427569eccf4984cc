"""``prove`` is lied to: of several fixes the wrong ones are found, and only the right one is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lies import Lie

from patcher import cli

torch = pytest.importorskip("torch")

MODEL = """\
import torch
from torch import nn

split = torch._dynamo.graph_break


class Model(nn.Module):
    def first(self, x):
        split()
        x = x + 1
        return x

    def second(self, x):
        split()
        x = x + 2
        return x

    def third(self, x):
        split()
        x = x + 3
        return x

    def fourth(self, x):
        split()
        x = x + 4
        return x

    def forward(self, x):
        return self.third(self.second(self.first(self.fourth(x * 2)))) * 3


def build():
    return Model()


def calls():
    return [(torch.ones(4),)]
"""


class Right(Lie):
    code = "FC901"


class Wrong(Lie):
    code = "FC902"


class RightAsRecorded(Lie):
    code = "FC903"


class Raising(Lie):
    code = "FC904"


RULES = (
    Right("split()\nx = x + 1", "x = 1 + x"),
    Wrong("split()\nx = x + 2", "x = x + 2.5"),
    Raising("split()\nx = x + 3", "raise ValueError(3)"),
    RightAsRecorded("split()\nx = x + 4", "x = x.abs() + 4"),
)


@pytest.mark.long
def test_wrong_fixes_are_found_and_the_right_one_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one_parent: None
) -> None:
    (tmp_path / "m.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    how = ["--quick", "--backend", "eager", "--case", "m.py", "--json", "told.json", "-o", "report.json", "-q", "m.py"]
    assert cli.main(RULES, ["prove", *how]) == 0
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert told["verdict"] == "optimized"
    assert [fix["code"] for fix in told["fixes"]] == ["FC901"]
    fates = {one["code"].partition(" ")[0]: one["outcome"] for one in told["dropped"]}
    assert fates == {"FC902": "different", "FC903": "different", "FC904": "failed"}
    (why,) = [one["reason"] for one in told["dropped"] if one["code"].startswith("FC903")]
    assert "negated values" in why or "other values" in why
    assert told["replayed"]["inputs"] > 40 and not told["replayed"]["different"]
    text = (tmp_path / "m.py").read_text(encoding="utf-8")
    assert text == MODEL.replace("        split()\n        x = x + 1\n", "        x = 1 + x\n")
    assert "results equal" in capsys.readouterr().out
    assert '"outcome": "kept"' in (tmp_path / "report.json").read_text(encoding="utf-8")
