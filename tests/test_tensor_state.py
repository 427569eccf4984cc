"""FC302, one write to the state at a time: what it becomes, or why it has to stay."""

from __future__ import annotations

import pytest

from patcher.edit.engine import patch
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
        self._n = torch.tensor(0)

    def update(self, layer, keys):
        n = int(self._used[layer]) + int(self._n) + int(self._start[layer])
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
        ("self._used.fill_(3)", "self._used[:] = [3] * len(self._used)"),
        ("self._used[layer] = len(x)", "self._used[layer] = len(x)"),
        ("self._n.add_(x.shape[0])", "self._n += x.shape[0]"),
        ("self._n = self._n + x.shape[0]", "self._n = self._n + x.shape[0]"),
    ],
)
def test_becomes_integers(line: str, after: str) -> None:
    result = patched(line)
    assert result.fixed
    assert result.text.splitlines()[-1].strip() == after


@pytest.mark.parametrize("line", ["self._used[layer] = x", "self._n += x", "self._n.fill_(x)", "self._used[x] = 2"])
def test_takes_one_integer_for_granted(line: str) -> None:
    """It may be a tensor of as many elements, or one that the caller goes on to change."""
    result = patched(line)
    assert not result.fixed
    assert {f.applicability for f in result.found} == {"unsafe"}
    assert all("`x` is" in f.assumption for f in result.found)


@pytest.mark.parametrize(
    "line",
    [
        "self._used[:] = self._start",
        "self._used += self._start",
        "self._used[:] = x",
        "self._used.add_(x)",
        "self._n = x",
        "self._n = 2",
        "self._n = self._used[layer]",
        "self._used[layer] = self._start[layer]",
        "self._n *= 1103515245",
        "self._n += 2**31",
        "self._used[layer] = 2147483648",
        "self._used.fill_(2147483648)",
        "self._used[layer] += x.item()",
        "for at in self._used:\n            at.fill_(at + 1)",
        "n = self._n\n        self._n += 1\n        return self.keys[0, :, :n]",
        "return self.keys[0, :, : self._n + self.update(0, x).shape[1]]",
        "return self.keys[:, self._n]",
        "return range(int(self._used[0]))",
        "return int(self._used[0]) == 0",
        "return self._n",
        "return lambda: self._n",
        "print(self._used)",
    ],
)
def test_stays_in_tensors(line: str) -> None:
    result = patched(line)
    assert not result.fixed
    assert {f.code for f in result.found} <= {"FC302"}
    assert {f.applicability for f in result.found} <= {"display-only"}
