"""What a file that is prepared for TorchScript has to do with the functions of a file that it imports."""

from __future__ import annotations

import ast

import pytest

from patcher.edit.engine import patch
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE

RULES = {rule.code: rule for rule in load_rules()}
BASE = """
import warnings


class Base(nn.Module):
    def masked(self, x):
        warnings.warn("it is slow", UserWarning)
        return x * 2

    def both(self, x):
        return self.masked(x)
"""
NET = """
from base import Base


class Net(Base):
    def forward(self, x):
        return self.both(x)
"""
HEAD = "import torch\nfrom base import Base\n\n\nclass Head(Base):\n    {}\n    def run(self, x):\n        return {}\n"


def applicability(head: str) -> str:
    texts = {"base.py": PREAMBLE + BASE, "net.py": NET, "head.py": head}
    project = Project([summarise(ast.parse(text), path) for path, text in texts.items()])
    found = patch(texts["base.py"], "base.py", (RULES["FC602"],), Settings(), project).found
    return found[0].applicability


@pytest.mark.parametrize("body", ["x + 1", "self.other(x)"])
def test_a_prepared_file_that_does_not_name_a_function_leaves_it_alone(body: str) -> None:
    assert applicability(HEAD.format("@torch.jit.unused", body)) == "safe"


@pytest.mark.parametrize(
    "body", ["self.masked(x)", "self.both(x)", "Base.masked(self, x)", "[f(x) for f in (self.both,)]"]
)
def test_a_function_that_it_may_compile_with_its_own_is_not_changed_safely(body: str) -> None:
    assert applicability(HEAD.format("@torch.jit.unused", body)) == "unsafe"


def test_a_file_that_is_not_prepared_does_not_count() -> None:
    assert applicability(HEAD.format("@torch.no_grad()", "self.masked(x)")) == "safe"
