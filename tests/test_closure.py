"""What a function does with all that it calls: who gives tensors other sizes in place, as far as it can be met."""

from __future__ import annotations

import ast

import pytest

from patcher.facts.project.index import Project, summarise

OTHER = """
import torch.nn as nn
class Base(nn.Module):
    pass
class Cut(Base):
    def forward(self, x):
        x.resize_(1)
    def shorten(self, x):
        x.resize_(1)
"""
RESIZES = {
    "a class that is made": "from other import Cut\ndef f(x):\n    return Cut()(x)",
    "a class that is handed on": "from other import Cut\ndef f(x):\n    return run(Cut, x)",
    "a method of an object that can be met": "import other\ndef f(x, part):\n    return part.shorten(x)",
    "a part": "from other import Cut\nclass N:\n    def __init__(self):\n        self.cut = Cut()\n"
    "    def f(self, x):\n        return self.cut(x)",
}
DOES_NOT = {
    "a class above it that is named": "from other import Base\ndef f(x):\n    return isinstance(x, Base)",
    "a class above it that is made": "from other import Base\ndef f(x):\n    return Base()(x)",
    "a method of that name, far away": "def f(x, part):\n    return part.shorten(x)",
}


def _resizes(text: str) -> bool:
    project = Project([summarise(ast.parse(t), f"{name}.py") for name, t in (("model", text), ("other", OTHER))])
    return project.effects.reshapes("model.N.f" if "class N" in text else "model.f")


@pytest.mark.parametrize("text", RESIZES.values(), ids=RESIZES)
def test_sizes_may_change(text: str) -> None:
    assert _resizes(text)


@pytest.mark.parametrize("text", DOES_NOT.values(), ids=DOES_NOT)
def test_sizes_stay(text: str) -> None:
    assert not _resizes(text)
