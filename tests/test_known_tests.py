"""Which checks of a tensor's numbers are checks of what the host knows: nothing may have changed, no digit goes."""

from __future__ import annotations

import ast
import textwrap

import pytest

from rules.fc102_data_dependent_guard.known_tests import KnownTests
from tests.asking import facts_of

MODEL = """
import torch
from torch import nn

class Padded(nn.Module):
    def forward(self, x, width):
{body}
"""
PADDED = "x = torch.cat([torch.cat([u, u.new_zeros(1, width - u.size(1))], dim=1) for u in x])"


def is_known(body: str) -> bool:
    """Whether the first assertion in ``body`` is one of Python numbers."""
    facts = facts_of(MODEL.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 8)))
    (test,) = [n.test for n in ast.walk(facts.syntax.tree) if isinstance(n, ast.Assert)]
    return facts.ask(KnownTests).edit(test) is not None


@pytest.mark.parametrize("below", [PADDED, f"{PADDED}.relu()", PADDED.replace("x = ", "return ")])
def test_sizes_listed_right_above(below: str) -> None:
    body = f"x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width\n{below}"
    assert is_known(body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width",
            id="nothing says that the width is no float",
        ),
        pytest.param(
            f"x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width\n"
            f"if width > 2:\n    {PADDED}",
            id="a size of it is made in some calls only",
        ),
        pytest.param(
            f"x = [u.relu() for u in x]\ny = []\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width\n"
            f"{PADDED.replace('for u in x', 'for u in y')}",
            id="a size of it is made for what may hold nothing",
        ),
        pytest.param(
            f"x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x])\nx.append(n)\n"
            f"assert n.max() <= width\n{PADDED}",
            id="something stands between",
        ),
        pytest.param(
            f"x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width\n"
            f"{PADDED.replace('width - u.size(1)', 'width - part(u)')}",
            id="what is taken off the width is not known",
        ),
        pytest.param(
            "x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width\n"
            "x = [width.new_zeros(1, width) for width in x]",
            id="the size has another value of that name",
        ),
        pytest.param(
            f"x = (u.relu() for u in x)\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width\n{PADDED}",
            id="an iterator is used up",
        ),
        pytest.param(
            f"x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x]) + 1\n"
            f"assert n.max() <= width\n{PADDED}",
            id="the tensor holds something else",
        ),
    ],
)
def test_others_are_asked_of_the_tensor(body: str) -> None:
    assert not is_known(body)


def test_elements_that_are_written_out() -> None:
    assert is_known("n = torch.tensor([x.shape[0], x.shape[1]])\nassert n.max() <= x.shape[1]")
    assert not is_known("n = torch.tensor([x.shape[0], x.shape[1]])\nassert n.max() <= width")


OTHER = "class Size:\n    def size(self, i):\n        return 0.5\n    def flatten(self, i):\n        return self\n"


@pytest.mark.parametrize(("listed", "known"), [("u.size(1)", True), ("u.shape[1]", True), ("u.size(1) * 0.5", False)])
def test_a_project_with_sizes_of_its_own(listed: str, known: bool) -> None:
    body = f"x = [u.flatten(1) for u in x]\nn = torch.tensor([{listed} for u in x])\nassert n.max() <= width\n{PADDED}"
    text = MODEL.replace("{body}", textwrap.indent(body, " " * 8))
    facts = facts_of(text, other=OTHER)
    (test,) = [n.test for n in ast.walk(facts.syntax.tree) if isinstance(n, ast.Assert)]
    assert (facts.ask(KnownTests).edit(test) is not None) is known


def test_a_function_of_the_file_is_not_pythons() -> None:
    body = f"x = [u.relu() for u in x]\nn = torch.tensor([u.size(1) for u in x])\nassert n.max() <= width\n{PADDED}"
    text = MODEL.replace("{body}", textwrap.indent(body, " " * 8))
    for own, known in (("def most(*given):\n    return 0\n", True), ("def max(*given):\n    return 0\n", False)):
        facts = facts_of(own + text)
        (test,) = [n.test for n in ast.walk(facts.syntax.tree) if isinstance(n, ast.Assert)]
        assert (facts.ask(KnownTests).edit(test) is not None) is known


FORMATS = "class Named:\n    def __format__(self, spec):\n        self.held.add_(1)\n        return ''\n"


def test_a_message_is_put_together_when_the_test_has_failed() -> None:
    """In a loop its effects come before the next turn; nothing else of it does."""
    once = "n = torch.tensor([x.shape[0], 2])\nassert n.max() <= x.shape[1], f'{width}'"
    again = f"n = torch.tensor([x.shape[0], 2])\nfor _ in x:\n    {once.partition(chr(10))[2]}"
    for body, known in ((once, True), (again, False)):
        facts = facts_of(MODEL.replace("{body}", textwrap.indent(body, " " * 8)), other=FORMATS)
        (test,) = [n.test for n in ast.walk(facts.syntax.tree) if isinstance(n, ast.Assert)]
        assert (facts.ask(KnownTests).edit(test) is not None) is known
