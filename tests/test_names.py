"""Names that new code is given: by what they stand for, with a number only where that tells them apart."""

from __future__ import annotations

import ast

import pytest

from tests.asking import facts_of

MODEL = """
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, names):
        super().__init__()
        {early}

    def forward(self, x):
        return x
"""
#: What the constructor does, and how the method `_forward_loop` may be called then.
NAMED = {
    "nothing": ("pass", "_forward_loop"),
    "an attribute of that name": ("self._forward_loop = 1", "_forward_loop_2"),
    "any name may be set: no number is better than none": (
        "for n in names:\n            setattr(self, n, 1)",
        "_forward_loop",
    ),
    "any name may be set, and that one is": (
        "self._forward_loop = 1\n        for n in names:\n            setattr(self, n, 1)",
        "_forward_loop_2",
    ),
    "names that end like that one may be set": (
        "for n in names:\n            setattr(self, f'{n}_loop', 1)",
        "_forward_loop_2",
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_of_attribute(case: str) -> None:
    early, expected = NAMED[case]
    facts = facts_of(MODEL.replace("{early}", early))
    (cls,) = (n for n in ast.walk(facts.syntax.tree) if isinstance(n, ast.ClassDef))
    assert facts.writing.fresh_attribute("_forward_loop", cls) == expected
