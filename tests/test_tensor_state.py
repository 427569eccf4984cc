"""FC302, one write to the state at a time: what it becomes, or why it has to stay."""

from __future__ import annotations

import pytest

from patcher.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules

FC302 = tuple(rule for rule in load_rules() if rule.code == "FC302")
SOURCE = """\
import torch


class Memory:
    def __init__(self, layers, batch, room, size):
        self.keys = torch.zeros(layers, batch, room, size)
        self._used = torch.zeros(layers, dtype=torch.int)
        self._start = torch.zeros(layers, dtype=torch.int)
        self._pos = torch.zeros(1, dtype=torch.int)
        self._n = torch.tensor(0)
        self._at = [torch.tensor(0) for _ in range(layers)]

    def update(self, layer, keys):
        n = int(self._used[layer]) + int(self._n) + int(self._pos) + int(self._start[layer]) + int(self._at[layer])
        self.keys[layer, :, n : n + keys.shape[1]] = keys
        self._used[layer] = n + keys.shape[1]
        return self.keys[layer, :, : n + keys.shape[1]]

    def write(self, layer, x=None):
        {}
"""


def patched(line: str) -> PatchResult:
    result = patch(SOURCE.format(line), "memory.py", FC302, Settings())
    assert result.bugs == ()
    return result


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("self._used.fill_(x)", "self._used[:] = [int(x)] * len(self._used)"),
        ("self._used[layer] = x", "self._used[layer] = int(x)"),
        ("self._used[layer] = round(x)", "self._used[layer] = int(round(x))"),
        ("self._used[layer] = self._pos", "self._used[layer] = self._pos[0]"),
        ("self._pos[:] = self._n", "self._pos[:] = [self._n] * len(self._pos)"),
        ("self._n += x", "self._n += int(x)"),
    ],
)
def test_becomes_integers(line: str, after: str) -> None:
    result = patched(line)
    assert result.fixed
    assert result.text.splitlines()[-1].strip() == after


@pytest.mark.parametrize(
    "line",
    ["self._used[:] = x", "self._used += x", "self._used.add_(x)", "self._n = x", "self._at[layer] = x"],
)
def test_takes_one_integer_for_granted(line: str) -> None:
    """It may be a tensor of as many elements, or one that the caller goes on to change."""
    result = patched(line)
    assert not result.fixed
    assert {f.applicability for f in result.found} == {"unsafe"}
    assert all("`x` is" in f.assumption for f in result.found)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("self._used[:] = self._start", "a whole row"),
        ("self._used += self._start", "whole row"),
        ("self._n = self._pos", "one tensor"),
        ("self._at[layer] = self._used[layer]", "share one tensor"),
        ("self._n *= 1103515245", "wrap round"),
        ("self._n += 2**31", "wrap round"),
        ("self._used.sub_(2**31)", "wrap round"),
        ("self._used[layer] = 2147483648", "may not fit"),
        ("self._used.fill_(2147483648)", "may not fit"),
        ("for at in self._at:\n            at.fill_(at + 1)", "each element"),
        ("for at in self._at:\n            at.fill_(x.pop())", "more than once"),
    ],
)
def test_stays_in_tensors(line: str, reason: str) -> None:
    result = patched(line)
    assert not result.fixed
    assert {f.applicability for f in result.found} == {"display-only"}
    assert all(reason in f.assumption for f in result.found)


TYPED = """\
import torch


class Memory:
    def __init__(self, layers: int, room: int):
        start = torch.zeros(layers, dtype=torch.int64)
        self._used = start
        self._at = [torch.tensor(0), torch.tensor(0)]
        self.keys = torch.zeros(layers, 2, room, 4)

    def step(self, keys):
        return keys.shape[1]

    def update(self, layer: int, keys):
        n: torch.Tensor = self._used[layer]
        self.keys[layer, :, n : n + keys.shape[1]] = keys
        self._used[layer] += self.step(keys)
        self._at[layer] += abs(self._at[layer]) + keys.shape[1]
        return self.keys[layer, :, : max(self._used)], self.keys[layer, :, : self._at[layer]]
"""


def test_typed_names_own_methods_and_literal_lists_are_understood() -> None:
    result = patch(TYPED, "memory.py", FC302, Settings())
    assert result.bugs == ()
    assert [f.line for f in result.fixed] == [7, 8]
    added = [line.strip() for line in result.text.splitlines() if line not in TYPED.splitlines()]
    assert added == [
        "start = [0] * layers",
        "self._at = [0, 0]",
        "n: int = self._used[layer]",
        "self._used[layer] += int(self.step(keys))",
    ]
