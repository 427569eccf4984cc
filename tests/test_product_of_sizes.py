"""FC615: sizes that a graph keeps open stay open in what multiplies them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim, export
from torch.fx.experimental.proxy_tensor import make_fx

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules

SOURCE = """\
import numpy as np
import torch
from torch import nn


class Flat(nn.Module):
    def forward(self, x):
        x = x.relu()
        return x.reshape(x.shape[0], np.prod(x.shape[1:])) + int(np.prod([x.shape[1], x.shape[2]]))
"""


@pytest.fixture(scope="module")
def flat() -> torch.nn.Module:
    text = patch(SOURCE, "flat.py", load_rules(), Settings(unsafe=True)).text
    assert "np.prod" not in text
    names: dict[str, Any] = {}
    exec(compile(text, "flat.py", "exec"), names)
    made = names["Flat"]()
    assert isinstance(made, torch.nn.Module)
    return made


def test_what_is_exported_takes_other_sizes(flat: torch.nn.Module) -> None:
    sizes = ({0: Dim("rows"), 1: Dim("many"), 2: Dim("width")},)
    program = export(flat, (torch.ones(2, 3, 4),), dynamic_shapes=sizes, strict=False)
    assert torch.equal(program.module()(torch.ones(5, 2, 7)), torch.full((5, 14), 15.0))


def test_what_is_traced_takes_other_sizes(flat: torch.nn.Module) -> None:
    traced = make_fx(flat, tracing_mode="symbolic")(torch.ones(2, 3, 4))
    assert torch.equal(traced(torch.ones(5, 2, 7)), torch.full((5, 14), 15.0))
