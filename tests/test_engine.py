"""What the engine makes of one text, beyond what the rules' own examples show."""

from __future__ import annotations

import pytest

from patcher.engine import patch
from patcher.settings import Settings
from rules import load_rules

MODEL = """\
import torch
from library import {base}


class Inner({base}):
    pass


class Model(Inner):
    def forward(self, x):
        y = x * 2
        if y.sum() > 3:
            y = y * 0.5
        return y + 1
"""


@pytest.mark.parametrize(("base", "compiled"), [("PreTrainedModel", True), ("object", False)])
def test_a_module_is_known_through_a_base_that_is_not_scanned(base: str, compiled: bool) -> None:
    text = MODEL.format(base=base) if compiled else MODEL.format(base=base).replace("from library import object", "")
    result = patch(text, "model.py", tuple(load_rules()), Settings())
    assert bool(result.fixed) == compiled
