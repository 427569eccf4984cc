"""What a file costs, counted and not timed: it grows no faster than the findings in it, or its branches."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FrameType, ModuleType
from typing import Any

import pytest
from test_budget import calls_of

from patcher.edit.engine import patch
from patcher.files.lines import opcodes
from patcher.finding import find
from patcher.settings import Settings
from rules import load_rules

RULES = tuple(load_rules())
HEAD = "import torch\nimport torch.nn as nn\n\n\n"


def chain(branches: int) -> str:
    """Branches in a row, each of which binds what the next one tests."""
    branch = "        if x.sum() > {i}:\n            x = x * 2\n        else:\n            x = x + {i}\n"
    body = "".join(branch.format(i=i) for i in range(branches))
    return f"{HEAD}class Net(nn.Module):\n    def forward(self, x):\n{body}        return x\n"


@pytest.mark.parametrize(("branches", "unsafe"), [(130, False), (400, True), (1000, False)])
def test_a_long_chain_of_branches_is_read(branches: int, unsafe: bool) -> None:
    result = find(chain(branches), "net.py", RULES, Settings(unsafe=unsafe))
    assert len(result.found) == branches and not result.bugs


def test_a_long_chain_of_branches_is_fixed() -> None:
    result = patch(chain(130), "net.py", RULES, Settings())
    assert len(result.fixed) == 130 and not result.bugs


@pytest.mark.parametrize("act", [find, patch])
def test_twice_the_branches_take_twice_the_calls(act: Callable[..., object]) -> None:
    """Definitions that are made of definitions are looked at once, and not once for each way to them."""
    small, large = (calls_of(lambda n=n: act(chain(n), "net.py", RULES, Settings())) for n in (8, 16))  # type: ignore[misc]
    assert large <= 2.1 * small, f"{small} calls for 8 branches, {large} for 16"


def test_lines_that_are_alike_are_not_compared_with_each_other() -> None:
    """What difflib looks at is counted, line by line of its own code: it has loops without calls."""
    steps = []
    for classes in (50, 100):
        parts = [
            f"class Net{n}:\n    def forward(self, x):\n        print('in')\n        return x\n" for n in range(classes)
        ]
        old = "".join(parts).splitlines()
        new = "".join(parts).replace("        print", "        if eager:\n            print").splitlines()
        steps.append(lines_of(difflib, lambda old=old, new=new: opcodes(old, new)))  # type: ignore[misc]
        assert applied(old, new) == new
    assert steps[1] <= 2.1 * steps[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("", "a"),
        ("a", ""),
        ("abcab", "abab"),
        ("xaaay", "xaay"),
        ("abcd", "dcba"),
        ("abxcab", "abycab"),
        ("aa", "a"),
    ],
)
def test_opcodes_make_the_new_lines_of_the_old(old: str, new: str) -> None:
    assert "".join(applied(old, new)) == new
    codes = opcodes(old, new)
    assert all(code[0] == "equal" for code in codes) is (old == new)
    assert all(a[0] != "equal" or b[0] != "equal" for a, b in pairwise(codes)), "equal lines in one piece"
    assert [(i, j) for _, _, i, _, j in codes[:-1]] == [(i, j) for _, i, _, j, _ in codes[1:]]


def applied(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return [line for tag, i, j, k, m in opcodes(old, new) for line in (old[i:j] if tag == "equal" else new[k:m])]


def lines_of(module: ModuleType, action: Callable[[], object]) -> int:
    """How many lines of ``module`` run."""
    number = 0

    def note(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal number
        number += event == "line"
        return note if frame.f_code.co_filename == module.__file__ else None

    sys.settrace(note)
    try:
        action()
    finally:
        sys.settrace(None)
    return number
