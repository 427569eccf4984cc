"""What a function does with all that it calls: who gives tensors other sizes in place, as far as it can be met."""

from __future__ import annotations

import ast

import pytest

from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise

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


READS = {
    "what it calls gives a new flag": "def a():\n    return torch.compiler.is_compiling()\n"
    "def f():\n    y = a() or torch.jit.is_tracing()\n    y |= a()\n    return y",
    "one of two flags": "def a():\n    return False\ndef f(x):\n    y = a() if x is None else True\n    y |= a()",
    "a new list of another function": "def a():\n    return []\ndef f(x):\n    y = a()\n    y += [x]",
    "a method's new tensor": "class N:\n    def f(self, x):\n        y = torch.zeros(3)\n        y += x",
}
CHANGES = {
    "what it is given": "def a(x):\n    return x\ndef f(x):\n    y = a(x)\n    y += 1",
    "what another function holds": "KEPT = []\ndef a():\n    return KEPT\ndef f(x):\n    y = a()\n    y += [x]",
    "what a function that it calls writes": "def a(x):\n    x += 1\n    return 1\ndef f(x):\n    y = a(x)\n    y |= 1",
    "a result that is not read": "from elsewhere import a\ndef f(x):\n    y = a()\n    y += [x]",
    "a result of a name that is bound": "def a():\n    return []\ndef f(x, b):\n    a = b.c\n    y = a()\n    y += [x]",
    "one of two that others hold": "def a():\n    return []\ndef f(x):\n    y = a() or x.rows\n    y += [1]",
}


def _changes(text: str) -> bool:
    project = Project([summarise(ast.parse(f"import torch\n{text}"), "model.py")])
    does = project.effects.of("model.N.f" if "class N" in text else "model.f")
    return does.writes or does.runs


@pytest.mark.parametrize("text", READS.values(), ids=READS)
def test_what_only_reads_writes_nothing(text: str) -> None:
    assert not _changes(text)


@pytest.mark.parametrize("text", CHANGES.values(), ids=CHANGES)
def test_what_writes_or_may_write_does(text: str) -> None:
    assert _changes(text)
