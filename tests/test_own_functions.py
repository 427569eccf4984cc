"""Where a function goes that a fix writes into a file: above what calls it, not between what begins the file."""

from __future__ import annotations

import ast
import textwrap

import pytest

from patcher.facts import Facts
from patcher.facts.effects.own_functions import OwnFunctions
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.settings import Settings


@pytest.mark.parametrize(
    ("source", "beside", "after"),
    [
        ("import torch\n\ntorch.save(STATE, 'a')", "import torch", True),
        ("import io\nimport torch\n\nx = 1\ntorch.save(STATE, 'a')", "import torch", True),
        # what directly follows the imports belongs to them
        ("import torch\ntorch.manual_seed(0)\n\ntorch.save(STATE, 'a')", "torch.save(STATE, 'a')", False),
        (
            "import torch\ntorch.manual_seed(0)\n\ndef model():\n    pass\n\nif model():\n    torch.save(STATE, 'a')",
            "def model():\n    pass",
            False,
        ),
        ("import torch\n\n\ndef f():\n    pass\n\n\ndef g():\n    torch.save(STATE, 'a')", "def g():", False),
        ("torch.save(STATE, 'a')", "torch.save(STATE, 'a')", False),
    ],
)
def test_a_new_function_stands_by_the_functions_or_below_the_imports(source: str, beside: str, after: bool) -> None:
    tree = ast.parse(textwrap.dedent(source))
    facts = Facts(tree, "script.py", Project([summarise(tree, "script.py")]), Settings(), frozenset())
    used = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == "STATE"]
    anchor, below = facts.ask(OwnFunctions).anchor(used)
    assert ast.unparse(anchor).startswith(beside)
    assert below is after
