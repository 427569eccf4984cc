"""A function that a constructor hands on is compiled where the attribute that it becomes is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from fix_compile import main

HEAD = """\
from functools import partial
import torch
from torch import nn


def number(x):
    return x.sum().item()


def other(x):
    return x.sum().item()


def choose(kind):
    picked = number if kind else torch.relu
    return picked


def made(kind):
    def inner(x):
        return number(x)

    return inner


TABLE = {"number": number, "none": None}


"""
BASE = """\
class Base(nn.Module):
    def __init__(self, reduce):
        super().__init__()
        self.reduce = partial(reduce)

    def forward(self, x):
        return x + self.reduce(x)


"""
OWN = """\
class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.reduce = {}

    def forward(self, x):
        return x + self.reduce(x)
"""


def told(folder: Path, source: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    (folder / "model.py").write_text(source)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["fix-compile", "check", str(folder)])
        main()
    lines = [line for line in capsys.readouterr().out.splitlines() if ": FC201 [" in line]
    return [line.partition("model.py:")[2].partition(":")[0] for line in lines]


@pytest.mark.parametrize(
    "value",
    [
        "number",
        "partial(number)",
        "number if kind else torch.relu",
        '{"number": number}[kind]',
        "TABLE[kind]",
        "choose(kind)",
        "made(kind)",
        "lambda x: number(x) * 2",
        "kind or number",
    ],
)
def test_an_attribute(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, HEAD + OWN.format(value), capsys) == ["7"]


@pytest.mark.parametrize(
    "sub",
    [
        "class Sub(Base):\n    def __init__(self):\n        super().__init__(number)\n",
        "class Sub(Base):\n    def __init__(self):\n        super().__init__(reduce=partial(number))\n",
        "class Mid(Base):\n    def __init__(self, how):\n        super().__init__(how)\n\n\nnet = Mid(number)\n",
        "class Mid(Base):\n    def __init__(self, *, how):\n        super().__init__(how)\n\n\nnet = Mid(how=number)\n",
        "net = Base(number)\n",
    ],
)
def test_what_a_class_is_made_with(sub: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, HEAD + BASE + sub, capsys) == ["7"]


@pytest.mark.parametrize(
    "source",
    [
        OWN.format("torch.relu\n        self.apply(number)"),
        OWN.format("torch.relu").replace("        self.reduce", "        self.unused = number\n        self.reduce"),
        OWN.format("number").replace("self, kind", "self, number"),
        BASE
        + "class Other(nn.Module):\n    def __init__(self, reduce):\n        super().__init__()\n\n\nOther(number)\n",
        "for step in range(number(torch.ones(2))):\n    pass\n",
    ],
)
def test_one_that_is_never_called(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, HEAD + source, capsys) == []
