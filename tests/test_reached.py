"""Which functions compiled code reaches: a name means what it is bound to where it stands."""

from __future__ import annotations

import pytest

from patcher.engine import patch
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE

SOURCE = """
def panel(n):
    torch.Generator().manual_seed(n)
    return torch.ones(n)


class Net(nn.Module):
    def forward(self, {parameter}, other):
        return panel({handed}) + other
"""


def told(source: str) -> set[str]:
    found = patch(PREAMBLE + source, "example.py", tuple(load_rules()), Settings()).found
    return {f.code for f in found}


def test_a_function_is_reached_by_its_name() -> None:
    assert "FC611" in told(SOURCE.format(parameter="x", handed="x"))


def test_a_parameter_of_that_name_is_another_thing() -> None:
    assert "FC611" not in told(
        SOURCE.format(parameter="panel", handed="other").replace("panel(other)", "panel[..., -1:]")
    )


HEADS = """
def panel(n):
    torch.Generator().manual_seed(n)
    return torch.ones(n)


def around(function):
    return function


class Net(nn.Module):
    {}
"""


@pytest.mark.parametrize(
    "head",
    [
        "def forward(self, x, panel=panel):\n        return panel(x)",
        "def forward(self, x, *, panel=panel):\n        return panel(x)",
        "def forward(self, x, panel=None, other=lambda: panel(2)):\n        return x + other()",
        "@around(panel)\n    def forward(self, panel):\n        return panel + 1",
    ],
)
def test_a_head_means_what_the_file_calls_so(head: str) -> None:
    assert "FC611" in told(HEADS.format(head))


def test_one_of_two_functions_means_what_the_file_calls_so() -> None:
    two = "def go(panel):\n    return panel[0]\n\n\ndef go(x):\n    return panel(x)\n\n\n"
    assert "FC611" in told(two + HEADS.format("def forward(self, x):\n        return go(x)"))


def test_a_body_means_the_parameter() -> None:
    assert "FC611" not in told(HEADS.format("def forward(self, panel): return panel[0] + sum(p for p in panel)"))
