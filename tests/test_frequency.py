"""How often a line is reached: what the source says of loops, layers, flags and errors."""

from __future__ import annotations

import ast
import textwrap

import pytest

from patcher.facts import Facts
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.running.frequency import Frequency
from patcher.settings import Settings

MODEL = """
import torch
from torch import nn

QUIET = False
TALKS = True

class Block(nn.Module):
    def __init__(self, verbose=False, width: int = 4):
        super().__init__()
        self.verbose = verbose
        self.checkpointing = False
        self.initted = False
        self.width = width

    def forward(self, x, mask=None, debug: bool = False, wanted: bool | None = None):
{body}
        self.initted = True
        return x

    def use_checkpointing(self):
        self.checkpointing = True

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = (1, 2)

    def forward(self, x, mask=None, debug: bool = False, wanted: bool | None = None):
{body}
        return x

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = nn.ModuleList([Block() for _ in range(n)])
        self.head = Head()

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            mark("layers")
        return self.head(x)

def mark(text):
    pass
"""


def reached(body: str) -> dict[str, dict[str, str]]:
    """By class, how often each ``mark("...")`` is reached, with ``body`` in two forwards."""
    tree = ast.parse(MODEL.replace("{body}", textwrap.indent(textwrap.dedent(body).strip(), " " * 8)))
    facts = Facts(tree, "model.py", Project([summarise(tree, "model.py")]), Settings(), frozenset())
    found: dict[str, dict[str, str]] = {}
    for call in ast.walk(tree):
        match call:
            case ast.Call(func=ast.Name(id="mark"), args=[ast.Constant(value=str(text))]):
                scope = facts.syntax.scope_of(call).partition(".")[0]
                found.setdefault(scope, {})[text] = str(facts.ask(Frequency).of(call))
    return found


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("mark('m')", "each call"),
        ("for i in range(3):\n    mark('m')", "each turn of a loop"),
        ("y = [mark('m') for i in x]", "each turn of a loop"),
        ("while x.shape[0] > 2:\n    mark('m')\n    x = x[1:]", "each turn of a loop"),
        ("for i in self.stages:\n    mark('m')", "each turn of a loop"),  # numbers, by a name that layers have
        ("for layer in self.blocks:\n    mark('m')", "each layer"),
        ("y = [i for i in mark('m')]", "each call"),
        ("if mask is not None:\n    mark('m')", "some calls"),
        ("if x.shape[0] > 2:\n    pass\nelse:\n    mark('m')", "some calls"),
        ("if debug:\n    mark('m')", "only when `debug` is set"),
        ("if debug and mask is not None:\n    mark('m')", "only when `debug` is set"),
        ("if not debug:\n    mark('m')", "each call"),
        ("if debug or TALKS:\n    mark('m')", "each call"),
        ("if not debug:\n    return x\nmark('m')", "only when `debug` is set"),
        ("if wanted:\n    mark('m')", "only when `wanted` is set"),
        ("wanted = wanted if wanted is not None else x.shape[0] > 2\nif wanted:\n    mark('m')", "some calls"),
        ("if QUIET:\n    mark('m')", "only when `QUIET` is set"),
        ("if x.shape[0] > 2:\n    debug = True\nif debug:\n    mark('m')", "some calls"),
        ("if self.training:\n    mark('m')", "some calls"),
        ("if x.shape[0] > 2:\n    mark('m')\n    raise ValueError('shape')", "only on the way to an error"),
        ("try:\n    x = x + 1\nexcept RuntimeError:\n    mark('m')", "only on the way to an error"),
        ("if mask not in self.kept:\n    self.kept[mask] = x\n    mark('m')", "only when a cache is filled"),
        ("if mask not in self.kept:\n    self.kept[x] = x\n    mark('m')", "some calls"),
        ("if mask not in self.kept:\n    self.kept[mask] = x\nelse:\n    mark('m')", "some calls"),
        ("if mask in self.kept:\n    self.kept[mask] = x\n    mark('m')", "some calls"),
        ("if not self.told:\n    mark('m')\n    self.told = True", "only until `self.told` is set"),
        ("if x.dim() > 2 and not self.told:\n    mark('m')\n    self.told = True", "only until `self.told` is set"),
        ("if x.dim() > 2 or not self.told:\n    mark('m')\n    self.told = True", "some calls"),
        ("if not self.told:\n    mark('m')\n    self.told = False", "some calls"),
        ("if self.told is None:\n    mark('m')\n    self.told = None", "some calls"),
        ("if self.told:\n    mark('m')\n    self.told = True", "some calls"),
        ("if not self.told:\n    mark('m')\n    if debug:\n        self.told = True", "some calls"),
        (
            "if mask in self.kept:\n    return x\nif debug:\n    mark('m')\nself.kept[mask] = x",
            "only when `debug` is set",
        ),
        ("if mask in self.kept:\n    return x\nmark('m')\nself.kept[x] = x", "each call"),
        ("if mask in self.kept:\n    x = x + 1\nmark('m')\nself.kept[mask] = x", "each call"),
        ("if not self.told:\n    return x\nmark('m')\nself.told = True", "each call"),
        ("debug and mark('m')", "only when `debug` is set"),
        ("mark('m') if debug else 0", "only when `debug` is set"),
        ("for i in range(3):\n    if debug:\n        mark('m')", "only when `debug` is set"),
    ],
)
def test_what_is_said_of_a_line(body: str, head: str) -> None:
    assert reached(body)["Head"]["m"] == head


def test_what_is_one_of_several_modules_runs_for_each_layer() -> None:
    found = reached("mark('m')")
    assert found["Block"]["m"] == "each layer"
    assert found["Model"]["layers"] == "each layer"
    assert found["Head"]["m"] == "each call"


@pytest.mark.parametrize(
    ("test", "block"),
    [
        ("self.verbose", "only when `verbose` is set"),
        ("self.checkpointing", "only when `self.checkpointing` is set"),
        ("not self.initted", "some calls"),
        ("self.width", "some calls"),
    ],
)
def test_attributes_that_nobody_but_the_host_sets_are_flags(test: str, block: str) -> None:
    assert reached(f"if {test}:\n    mark('m')")["Block"]["m"] == block


def test_a_flag_that_the_file_itself_sets_is_not_off_by_default() -> None:
    found = reached("if debug:\n    mark('m')\nx = self.other(x, debug=True)")
    assert found["Head"]["m"] == "some calls"
