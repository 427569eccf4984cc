"""Where a run has seen both answers of a test that may only save work, compiled code takes the general way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_observed import RULES, found_in, only_here  # noqa: F401 - the fixture is used by each test

from patcher import cli
from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE, run_example

torch = pytest.importorskip("torch")

CODE = """
def narrowed(mask):
    if {test}:
        return None
    return mask


class Net(nn.Module):
    def forward(self, x, mask):
        mask = narrowed(mask)
        return x if mask is None else x * mask
"""
BOTH = "Net()(torch.ones(3), torch.ones(3)); Net()(torch.ones(3), torch.tensor([1.0, 0, 1]))"
SAME = "Net()(torch.ones(3), torch.ones(3)); Net()(torch.ones(3), torch.ones(3))"
SKIP, TAKE = "not torch.compiler.is_compiling() and ", "torch.compiler.is_compiling() or "


@pytest.mark.parametrize(
    ("test", "now"),
    [
        ("mask.all()", SKIP + "mask.all()"),
        ("torch.all(mask == 1)", SKIP + "torch.all(mask == 1)"),
        ("not (mask == 0).any()", SKIP + "not (mask == 0).any()"),
        ("(mask == 0).sum() == 0", SKIP + "(mask == 0).sum() == 0"),
        ("not mask.all()", TAKE + "not mask.all()"),
        ("(mask == 0).any().item()", TAKE + "(mask == 0).any().item()"),
        ("mask is not None and mask.all()", f"mask is not None and ({SKIP}mask.all())"),
        ("mask is not None and (mask == 0).sum() > 0", f"mask is not None and ({TAKE}(mask == 0).sum() > 0)"),
    ],
)
def test_compiled_code_takes_the_general_way(test: str, now: str, tmp_path: Path) -> None:
    text = CODE.format(test=test)
    result = found_in(text, "FC101", tmp_path, BOTH, unsafe=True)
    written = next(line.strip() for line in result.text.splitlines() if "is_compiling" in line)
    plain = f"if {now}:".replace("(", "").replace(")", "")
    assert written.replace("(", "").replace(")", "") == plain
    (one,) = result.fixed
    assert (one.applicability, one.measured) == ("unsafe", False)
    assert "the other branch gives the same (a run has seen both)" in one.assumption
    assert found_in(text, "FC101", tmp_path, SAME, unsafe=True).fixed == (), "one answer says nothing of the other"
    assert found_in(text, "FC101", tmp_path, BOTH).fixed == (), "only where assumptions are taken"


@pytest.mark.parametrize(
    "test",
    [
        "mask.max() > 0.5",  # nothing says which way is the general one
        "mask.sum() < 3",
        "mask.all() or mask.min() < 0",  # two questions
        "SEEN.append(0) or mask.all()",  # asking has an effect; that is another operand, and stays
        "mask.mul_(1).all()",  # asking has an effect
    ],
)
def test_what_is_no_shortcut_stays(test: str, tmp_path: Path) -> None:
    text = CODE.format(test=test) + "\n\nSEEN = []\n"
    result = found_in(text, "FC101", tmp_path, BOTH, unsafe=True)
    kept = [line for line in result.text.splitlines() if "is_compiling" in line]
    assert kept == [] or (test.startswith("SEEN") and "SEEN.append(0) or" in kept[0])


def test_what_may_end_a_loop_stays(tmp_path: Path) -> None:
    text = """
class Net(nn.Module):
    def forward(self, x):
        while True:
            x = x - 1
            if (x < 0).all():
                return x
"""
    result = found_in(text, "FC101", tmp_path, "Net()(torch.tensor([3.0, 1.0]))", unsafe=True)
    assert "is_compiling" not in result.text


MODEL = """\
import torch
from torch import nn


def padded(x, mask):
    if mask.all():
        return x
    return x * mask


def scaled(x, mask):
    if not mask.any():
        return None
    return mask * 2.0


class Model(nn.Module):
    def forward(self, x, mask):
        x = torch.sin(padded(x, mask))
        scale = scaled(x, mask)
        return torch.cos(x) if scale is None else torch.cos(x) * scale


def build():
    return Model()


def calls():
    return [(torch.randn(4), torch.ones(4, dtype=torch.bool))]
"""


@pytest.mark.long
def test_one_that_only_saves_work_is_kept_and_one_that_decides_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], one_parent: None
) -> None:
    (tmp_path / "m.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    how = [
        "--quick",
        "--backend",
        "eager",
        "--unsafe",
        "--case",
        "m.py",
        "--json",
        "told.json",
        "-q",
        "--dry-run",
        "m.py",
    ]
    rules = tuple(rule for rule in load_rules() if rule.code == "FC101")
    assert cli.main(rules, ["prove", *how]) == 0
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert [(fix["code"], fix["line"]) for fix in told["fixes"]] == [("FC101", 6)], told
    assert [(one["code"], one["outcome"]) for one in told["dropped"]] == [("FC101 in scaled", "different")]
    assert "the other branch gives the same" in told["fixes"][0]["assumption"]
    assert told["replayed"]["inputs"] > 40


ARMS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
{body}
        return y * 2
"""
TWO = "torch.manual_seed(0); n = Net()\nfor x in (torch.ones(2, 3), -torch.ones(2, 3)):\n    n(x)"
ONE_LINE = """\
        if x.sum() > 0:
            y = self.lin(x)
        else:
            y = self.lin(-x) - 1
"""
LONGER = """\
        y = x
        if x.mean() < 0:
            y = self.lin(x)
            y = torch.tanh(y)
"""


@pytest.mark.parametrize(
    ("body", "written"),
    [
        (ONE_LINE, "y = torch.cond(x.sum() > 0, y_if_true, y_if_false)"),
        (LONGER, "y = torch.cond(x.mean() < 0, y_if_true, lambda y: y.clone(), (y,))"),
    ],
)
def test_both_arms_go_into_the_graph_where_a_run_has_seen_both(body: str, written: str, tmp_path: Path) -> None:
    text = ARMS.format(body=body.rstrip())
    result = found_in(text, "FC101", tmp_path, TWO, unsafe=True)
    assert written in result.text
    assert "both branches give tensors of one form" in result.fixed[0].assumption
    compared = run_example(text, result.text.removeprefix(PREAMBLE), RUN)
    assert compared.difference is None and compared.compiled_difference is None, str(compared)
    assert compared.after.graphs == 1 and compared.after.breaks == 0, str(compared)
    once = found_in(text, "FC101", tmp_path, "torch.manual_seed(0)\nNet()(torch.ones(2, 3))", unsafe=True)
    assert once.fixed == (), "one arm that never ran says nothing of the other"
    assert patch(PREAMBLE + text, "m.py", (RULES["FC101"],), Settings(unsafe=True)).fixed == ()


RUN = "def make():\n    torch.manual_seed(0)\n    return Net()\n\ncalls = [(torch.ones(2, 3),), (-torch.ones(2, 3),)]\n"


@pytest.mark.parametrize(
    "body",
    [
        # it assigns nothing that is read here
        "        y = x\n        if x.sum() > 0:\n            self.kept = self.lin(x)",
        # three ways
        "        if x.sum() > 0:\n            y = x + 1\n        elif x.mean() < -5:\n            y = x - 1\n"
        "        else:\n            y = x",
        # an arm that reads data as well
        "        y = x\n        if x.sum() > 0:\n            if x.sum() > 1:\n                y = self.lin(x)",
        # an error in an arm is seen
        "        try:\n            if x.sum() > 0:\n                y = self.lin(x)\n            else:\n"
        "                y = self.lin(x * 3)\n        except ValueError:\n            y = x",
    ],
)
def test_what_cond_cannot_be_stays(body: str, tmp_path: Path) -> None:
    result = found_in(ARMS.format(body=body), "FC101", tmp_path, TWO, unsafe=True)
    assert "torch.cond" not in result.text
