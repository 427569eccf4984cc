"""What looks like a cause of graph breaks and is none."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from patcher.diagnose.diagnosis import Remark
from patcher.diagnose.fine import fine
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise

HEAD = "import logging\nimport warnings\nimport torch\nfrom torch import nn\nlogger = logging.getLogger(__name__)\n"
NET = HEAD + "class Net(nn.Module):\n"


def of(
    text: str, ran: Mapping[str, frozenset[int]] | None = None, broke: frozenset[str] = frozenset()
) -> tuple[Remark, ...]:
    return fine([("net.py", text)], ran, broke)


def module(forward: str, more: str = "") -> str:
    """A module whose forward has these statements, from line 8 on."""
    lines = "".join(f"        {line}\n" for line in forward.splitlines())
    return f"{NET}    def forward(self, x, y=None):\n{lines}        return x + 1\n{more}"


# --- where no compiled code runs ------------------------------------------------------------------------------------

INIT = (
    NET
    + "    def __init__(self):\n        super().__init__()\n        {}\n    def forward(self, x):\n        return x\n"
)
OUTPUT = {
    "print": ("print('a')", "`print`"),
    "a logger": ("logger.info('a')", "`logger.info`"),
    "the module logging": ("logging.warning('a')", "`logging.warning`"),
    "a logger made on the spot": ("logging.getLogger('a').info('b')", "`logging.getLogger('a').info`"),
    "warnings": ("warnings.warn('a')", "`warnings.warn`"),
    "item": ("self.rates = [r.item() for r in torch.linspace(0, 1, 3)]", "`.item()`"),
    "tolist": ("self.rates = torch.linspace(0, 1, 3).tolist()", "`.tolist()`"),
}


@pytest.mark.parametrize("name", OUTPUT)
def test_the_constructor_is_eager(name: str) -> None:
    text, shown = OUTPUT[name]
    (remark,) = of(INIT.format(text))
    assert remark == Remark("net.py:9", f"{shown} (line 9) in `Net.__init__`", "in `__init__`, not in `forward`", text)


def test_one_remark_for_a_function() -> None:
    text = INIT.format("print('a')\n        print('b')\n        logger.info('c')")
    assert [r.what for r in of(text)] == ["`print` (lines 9, 10), `logger.info` (line 11) in `Net.__init__`"]


METHODS = NET + (
    "    def forward(self, x):\n        return self.step(x)\n"
    "    def step(self, x):\n        print('a')\n        return x\n"
    "    def save(self):\n        print('b')\n"
)


def test_what_forward_does_not_reach() -> None:
    (remark,) = of(METHODS)
    assert (remark.where, remark.why) == ("net.py:13", "not reached from any `forward` of these files")


SILENT = {
    "in forward": module("print('a')"),
    "a function that forward calls": module("show()", "def show():\n    print('a')\n"),
    "a training script": HEAD + "def train(model):\n    print('a')\n    print(model(1).item())\n",
    "a plain class beside a module": INIT.format("pass") + "class Trainer:\n    def run(self):\n        print('a')\n",
    "a method that any object of that name is asked for": module(
        "y.save()",
        "class Other(nn.Module):\n    def forward(self, x):\n        return x\n    def save(self):\n        print()\n",
    ),
    "a module that forward builds": module(
        "Other()", "class Other(nn.Module):\n    def __init__(self):\n        print('a')\n"
    ),
    "another print": "from mine import print\n" + INIT.format("print('a')"),
    "a dictionary": INIT.format("self.n = {}.items()"),
    "its own item": INIT.format("self.n = self.item('x')"),
    "a method of another object": INIT.format("self.bus.info('x')"),
    "a disabled function": METHODS.replace("    def step", "    @torch.compiler.disable\n    def step").replace(
        "print('b')", "pass"
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said_of(name: str) -> None:
    assert of(SILENT[name]) == ()


def test_another_file_may_reach_it() -> None:
    layer = (
        HEAD
        + "class Layer(nn.Module):\n    def forward(self, x):\n        return x\n    def step(self):\n        print()\n"
    )
    caller = HEAD + "class Net(nn.Module):\n    def forward(self, layer):\n        return layer.step()\n"
    assert len(fine([("layer.py", layer)], None, frozenset())) == 1
    assert fine([("layer.py", layer), ("far/net.py", caller)], None, frozenset()) == ()


def test_many_lines_are_cut_short() -> None:
    (remark,) = of(INIT.format("\n        ".join(9 * ["print('a')"])))
    assert remark.what == "`print` (lines 9, 10, 11, 12, 13, 14 and 3 more) in `Net.__init__`"


# --- what a run says ------------------------------------------------------------------------------------------------


def test_a_cause_is_not_fine() -> None:
    text = INIT.format("print('a')\n        print(\n            'b'\n        )")
    assert of(text, broke=frozenset({"net.py:9"}))[0].what == "`print` (line 10) in `Net.__init__`"
    assert of(text, broke=frozenset({"net.py:9", "net.py:11"})) == ()


def test_only_files_that_were_loaded() -> None:
    text = INIT.format("print('a')")
    assert of(text, {}) == ()
    assert len(of(text, {"net.py": frozenset()})) == 1


def test_an_index_that_is_there_is_used() -> None:
    text = INIT.format("print()")
    project = Project([summarise(ast.parse(text), "net.py")])
    files = [("net.py", text), ("other.py", text)]
    found = fine(files, {"net.py": frozenset()}, frozenset(), project=project)
    assert [r.where for r in found] == ["net.py:9"]


def test_paths_are_shown_as_told() -> None:
    (remark,) = fine([("net.py", INIT.format("print()"))], None, frozenset(), shown=lambda path: f"pkg/{path}")
    assert remark.where == "pkg/net.py:9"


def test_a_file_that_does_not_parse_is_passed_over() -> None:
    assert of("class Net(nn.Module:\n") == ()
