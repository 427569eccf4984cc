"""What a scan may cost, counted and not timed: so many constructions and calls for so many lines, and no more.

A count that is exceeded says that something is worked out again and again, or for files and functions that have no use
for it. Where more is needed for a good reason, the bound is raised here, in the same commit.
"""

from __future__ import annotations

import ast
import collections
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from patcher.edit.concrete import Patch
from patcher.facts import Facts
from patcher.facts.flow.definitions import Flow
from patcher.facts.project import summarising as projects
from patcher.facts.syntax import tree as syntax
from patcher.facts.values import inference as infer
from patcher.files import kept
from patcher.files.source import read_bytes
from patcher.patching.runner import run
from patcher.settings import Settings
from rules import load_rules

ROOT = Path(__file__).resolve().parent.parent
RULES = tuple(load_rules())
MODELS = sorted(ROOT.glob("fixtures/*/before.py"))


def code_of(function: Any) -> CodeType:
    code: CodeType = function.__code__
    return code


COUNTED = {
    code_of(read_bytes): "read",
    code_of(ast.parse): "parsed",
    code_of(syntax.Syntax.__init__): "shapes",
    code_of(projects.summarise): "summaries",
    code_of(Facts.__init__): "facts",
    code_of(Flow.__init__): "flows",
    code_of(infer.Inference._of): "values",
    code_of(syntax.children): "children",
    code_of(ast.iter_child_nodes): "children",  # each of its steps counts
    code_of(Patch.__init__): "patches",
    **{code_of(type(rule).check): "checks" for rule in RULES},
}


def counts(action: Callable[[], object]) -> collections.Counter[str]:
    """How often each of ``COUNTED`` runs; in this process."""
    found: collections.Counter[str] = collections.Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and (name := COUNTED.get(frame.f_code)) is not None:
            found[name] += 1

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for model in MODELS:
        (tmp_path / f"{model.parent.name}.py").write_bytes(model.read_bytes())
    (tmp_path / "plain.py").write_text("import torch\n\n\ndef double(x):\n    return x * 2\n")
    (tmp_path / "words.py").write_text("WORDS = ('a', 'b')\n")
    return tmp_path


def scan(package: Path, **how: Any) -> Callable[[], object]:
    return lambda: run([str(package)], RULES, Settings(), jobs=1, **how)


def test_looking(package: Path) -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in package.iterdir()]
    nodes = sum(1 for tree in trees for _ in syntax.walk(tree))
    functions = sum(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) for tree in trees for n in syntax.walk(tree))
    found = counts(scan(package, fixes=False))
    files = len(trees)
    assert found["read"] == found["parsed"] == found["summaries"] == files
    assert found["facts"] == len(MODELS), "files without a trigger of any rule are not analysed"
    assert found["shapes"] == found["summaries"] + found["facts"]
    assert found["patches"] == 0, "looking makes no fix"
    assert found["flows"] <= functions
    assert found["checks"] <= 1.0 * nodes  # measured: 0.96; FC208 of most nodes, FC611 of calls, FC614 of indices
    assert found["values"] <= 0.21 * nodes  # 0.19; FC208 asks what containers hold
    assert found["children"] <= 8 * nodes  # 6.7


MODULE = """
import torch
import torch.nn as nn
{imported}

class Cell{n}:
    def __init__(self, size):
        self.size = size

    def cumsum(self, x):
        return self.size

class Layer{n}(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner = nn.Linear(config.size, config.size)

    def scaled(self, x):
        return self.inner(x) * 2

    def forward(self, x, mask=None):
        if mask is not None:
            x = x + mask
        if x.sum() > 0:
            x = self.scaled(x)
        return x
"""


def test_twice_the_files_take_twice_the_calls(tmp_path: Path) -> None:
    """Nothing is asked of each pair of files, classes or functions."""
    calls = []
    for files in (12, 24):
        folder = tmp_path / str(files)
        folder.mkdir()
        (folder / "__init__.py").touch()
        for n in range(files):
            imported = f"from .m{n - 1} import Layer{n - 1}" if n else ""
            (folder / f"m{n}.py").write_text(MODULE.format(n=n, imported=imported))
        calls.append(calls_of(scan(folder, fixes=False)))
    assert calls[1] <= 2.1 * calls[0]


def test_names_that_are_made_of_each_other_are_looked_at_once_a_round() -> None:
    def summary_of(names: int) -> Callable[[], object]:
        lines = [f"    x{i} = x{j} if x0 else x{(i * j) % names}[0]" for i in range(names) for j in range(names)]
        tree = ast.parse("\n".join(["def f(x0):", *lines, "    x0.a = x1"]))
        return lambda: projects.summarise(tree, "circle.py")

    small, large = calls_of(summary_of(4)), calls_of(summary_of(8))
    assert large < 8 * small, f"{small} calls for 4 names, {large} for 8"


def test_items_of_what_is_made_of_them_come_to_an_end() -> None:
    """Each turn puts one more container around what the name may come from."""
    text = "def f(given):\n    x = {1: given.a}\n    for _ in given:\n        x = dict(x.items())\n    x[1].b = 2"
    assert projects.summarise(ast.parse(text), "circle.py")


def calls_of(action: Callable[[], object]) -> int:
    """How many functions of Python run, each step of a generator counted."""
    number = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal number
        number += event == "call"

    action()  # what is imported, and kept for all runs, is not counted
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return number


def test_fixing(package: Path) -> None:
    found = counts(scan(package))
    assert found["facts"] <= 4 * len(MODELS)  # a pass each, and one that finds nothing more to fix
    assert found["parsed"] <= 3 * found["facts"]
    nothing = counts(scan(package / "plain.py"))
    files = len(list(package.rglob("*.py")))  # the index covers them all, whatever is given
    assert (nothing["parsed"], nothing["facts"], nothing["patches"]) == (files, 0, 0)


@pytest.mark.parametrize("fixes", [True, False])
def test_nothing_is_worked_out_twice(package: Path, fixes: bool) -> None:
    again = scan(package, kept=kept.default_folder(), fixes=fixes)
    first = counts(again)
    assert first["facts"]
    second = counts(again)
    assert second == {"read": len(list(package.iterdir()))}
    (package / "words.py").write_text("WORDS = ('a', 'b', 'c')\n")
    third = counts(again)
    assert third["parsed"] == third["summaries"] == third["shapes"] == 1
    assert third["facts"] == 0
