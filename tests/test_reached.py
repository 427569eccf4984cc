"""What compiled code reaches: names mean what they are bound to; objects, other names, operators of its own."""

from __future__ import annotations

import ast

import pytest

from patcher.edit.engine import patch
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import PREAMBLE

HEAD = """\
import functools
import torch
from torch import nn

"""
#: What stands beside the model, and what its ``forward`` does; ``target`` is reached.
REACHED = {
    "an operator with a backward of its own": (
        "class Op(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return target(x)\n",
        "return Op.apply(x)",
    ),
    "the same, under another name": (
        "class Op(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return target(x)\n"
        "op = Op.apply\n",
        "return op(x)",
    ),
    "another name": ("other = target\n", "return other(x)"),
    "with some arguments": ("half = functools.partial(target)\n", "return half(x)"),
    "out of a table": ("TABLE = {'a': target}\n", "return TABLE['a'](x)"),
    "what makes an object": (
        "class Plain:\n    def __init__(self, x):\n        self.n = target(x)\n",
        "return Plain(x).n",
    ),
    "what a base makes": (
        "class Base:\n    def __init__(self, x):\n        self.n = target(x)\n"
        "class Plain(Base):\n    def __init__(self, x):\n        super().__init__(x)\n",
        "return Plain(x).n",
    ),
    "an operator of an object": (
        "class Plain:\n    def __getitem__(self, i):\n        return target(i)\n",
        "rows = Plain()\n        return rows[x]",
    ),
    "a method that tensors have too, of an object made here": (
        "class Plain:\n    def sum(self, x):\n        return target(x)\n",
        "return Plain().sum(x)",
    ),
    "the same, of an object that is kept": (
        "class Plain:\n    def sum(self, x):\n        return target(x)\n",
        "return self.plain.sum(x)",
    ),
    "the same, of an object that an annotation calls one": (
        "class Plain:\n    def sum(self, x):\n        return target(x)\n",
        "plain: Plain = self.given\n        return plain.sum(x)",
    ),
    "a class that the class has a name for": (
        "class Plain:\n    def __init__(self, x):\n        self.n = target(x)\n",
        "return self.kind(x).n",
    ),
    "a method that the initialiser chooses": ("", "return self.chosen(x)"),
    "a name that is put together": ("", "return getattr(self, 'step')(x)"),
}
UNREACHED = {
    "what is called to make a table": ("TABLE = dict(a=target(1))\n", "return TABLE['a'] * x"),
    "how an object looks": (
        "class Plain:\n    def __repr__(self):\n        return target(1)\n",
        "return Plain() and x",
    ),
    "a layer that is made": (
        "class Layer(nn.Module):\n    def __init__(self):\n        super().__init__()\n        target(1)\n",
        "return Layer()(x)",
    ),
    "an error": (
        "class Wrong(ValueError):\n    def __init__(self):\n        target(1)\n",
        "raise Wrong()",
    ),
    "a method that tensors have too, of who knows what": (
        "class Plain:\n    def sum(self, x):\n        return target(x)\n",
        "return x.sum(x)",
    ),
    "a method that makes what the initialiser keeps": ("", "return self.made(x)"),
    "a class in a table of the class": (
        "class Part:\n    def __init__(self, x):\n        self.n = target(x)\n\n\n"
        "class Net(nn.Module):\n    parts = {'a': Part}\n\n"
        "    def forward(self, x):\n        return x * len(self.parts)\n",
        "return x",
    ),
    "what is handed to make something": (
        "class Part:\n    def __init__(self, x):\n        self.n = target(x)\n\n\nPARTS = register(Part)\n",
        "return x * len(PARTS)",
    ),
    "a class of which it is only asked": (
        "class Plain:\n    def __init__(self, x):\n        self.n = target(x)\n",
        "return isinstance(x, Plain)",
    ),
}


def reaches(beside: str, does: str) -> bool:
    kind, keeps = ("Plain", "self.plain = Plain()") if "class Plain" in beside else ("None", "pass")
    source = f"""\
{HEAD}
def target(x):
    return x

{beside}
class Model(nn.Module):
    kind = {kind}

    def __init__(self):
        {keeps}
        self.chosen = self.step if kind is None else self.other
        self.made = self.build(3)

    def build(self, x):
        return target(x)

    def step(self, x):
        return target(x)

    def forward(self, x):
        {does}
"""
    return Project([summarise(ast.parse(source), "model.py")]).reached("model.target")


@pytest.mark.parametrize(("beside", "does"), REACHED.values(), ids=REACHED)
def test_it_is_reached(beside: str, does: str) -> None:
    assert reaches(beside, does)


@pytest.mark.parametrize(("beside", "does"), UNREACHED.values(), ids=UNREACHED)
def test_it_is_not(beside: str, does: str) -> None:
    assert not reaches(beside, does)


def test_a_method_that_the_class_of_another_file_inherits() -> None:
    files = {
        "base.py": "class Base:\n    def advance(self, x):\n        return x.sum().item()\n",
        "solver.py": "from base import Base\n\nclass Solver(Base):\n    pass\n",
        "model.py": "from torch import nn\nfrom solver import Solver\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, x, kind):\n        solver = kind(x)\n        return solver.advance(x)\n",
    }
    project = Project([summarise(ast.parse(text), path) for path, text in files.items()])
    assert project.reached("base.Base.advance")


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


CHOSEN = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = 2.0

    if hasattr(torch, "compile"):

        def tune(self, rate):
            {tuned}

        def forward(self, x):
            if (x > 1).any():
                y = x * self.rate
            else:
                y = x * 3
            return y + 1
    else:

        def forward(self, x):
            return x
"""


def test_methods_under_a_test_are_methods() -> None:
    for tuned, fixed in (("pass", {"FC101"}), ("self.rate = rate", set[str]())):
        result = patch(HEAD + CHOSEN.format(tuned=tuned), "net.py", load_rules(), Settings())
        assert "FC101" in {f.code for f in result.found}
        assert {f.code for f in result.fixed} == fixed, tuned


FAMILY = """\
from torch import nn

class Step:
    def __new__(cls, *args):
        cls.__call__ = cls.__call__
        return super().__new__(cls)

    def __call__(self, x):
        return self.apply(x)

    def apply(self, x):
        return x

class Crop(Step):
    def __call__(self, x):
        return super().__call__(x)

    def apply(self, x):
        return x[1:]

class Load(Step):
    def apply(self, x):
        return open(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.crop = Crop()

    def forward(self, x):
        {does}
"""
MADE = ("return Crop()(x)", "crop = Crop()\n        return crop(x)", "return self.crop(x)")
GIVEN = ("return x.apply(2)", "return Step.apply(x, 2)")


@pytest.mark.parametrize("does", MADE)
def test_what_compiled_code_makes_is_of_no_class_beside(does: str) -> None:
    project = Project([summarise(ast.parse(FAMILY.format(does=does)), "m.py")])
    assert project.reached("m.Crop.apply")
    assert not project.reached("m.Load.apply")


@pytest.mark.parametrize("does", GIVEN)
def test_what_is_given_may_be_of_any_class(does: str) -> None:
    project = Project([summarise(ast.parse(FAMILY.format(does=does)), "m.py")])
    assert project.reached("m.Step.apply")
    assert project.reached("m.Load.apply")
