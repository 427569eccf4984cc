"""Which functions compiled code reaches: a name means what it is bound to where it stands."""

from __future__ import annotations

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
