"""Which parameters count as masks by what is said of them: the rows that they pick are told."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from patcher.finding import find
from patcher.settings import Settings
from rules import load_rules

HEAD = """\
import torch

class Bool:
    def __class_getitem__(cls, axes):
        return cls

@torch.compile(backend="eager")
"""
X, KEEP, ROWS = torch.randn(4, 2), torch.tensor([True, False, True, True]), torch.tensor([2, 0])
CASES = [
    ("def way(x, face_mask):\n    return x[face_mask] * 2", (X, KEEP)),
    ("def way(x, mask=None):\n    if mask is not None:\n        x = x[mask]\n    return x * 2", (X, KEEP)),
    ("def way(x, keep: Bool['b n']):\n    return x[keep] * 2", (X, KEEP)),
    ("def way(x, keep: torch.BoolTensor):\n    return x[keep] * 2", (X, KEEP)),
    ("def way(x, keep):\n    return x[~keep] * 2", (X, KEEP)),
    ("def way(x, rows):\n    return x[rows] * 2", (X, ROWS)),
    ("def way(x, rows: Bool):\n    return x[rows] * 2", (X, ROWS)),
    ("def way(x, rows):\n    y = torch.where(x > 0, rows[:, None].sum(), 0)\n    return x[rows], y", (X, ROWS)),
]


@pytest.mark.parametrize(("way", "arguments"), CASES)
def test_rows_that_a_mask_picks_are_told(way: str, arguments: tuple[Any, ...]) -> None:
    result = find(f"{HEAD}{way}\n", "example.py", load_rules(), Settings())
    assert not result.bugs
    told = bool([f for f in result.found if f.code in ("FC208", "FC402")])
    torch._dynamo.reset()
    names: dict[str, Any] = {}
    exec(compile(HEAD.replace('@torch.compile(backend="eager")\n', "") + way, "likely_example.py", "exec"), names)
    explained = torch._dynamo.explain(names["way"])(*arguments)
    assert told is bool(explained.break_reasons)
