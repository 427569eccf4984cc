"""What the engine makes of one text, beyond what the rules' own examples show."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from patcher.edit.engine import patch
from patcher.facts import Facts
from patcher.finding import find
from patcher.rule import Code, Cost, Example, Finding, Fix, NearMiss, Replace, Rule, Where
from patcher.settings import Settings
from rules import load_rules

MODEL = """\
import torch
from library import {base}


class Inner({base}):
    pass


class Model(Inner):
    def forward(self, x):
        y = x * 2
        if y.sum() > 3:
            y = y * 0.5
        return y + 1
"""


@pytest.mark.parametrize(("base", "compiled"), [("PreTrainedModel", True), ("object", False)])
def test_a_module_is_known_through_a_base_that_is_not_scanned(base: str, compiled: bool) -> None:
    text = MODEL.format(base=base) if compiled else MODEL.format(base=base).replace("from library import object", "")
    result = patch(text, "model.py", tuple(load_rules()), Settings())
    assert bool(result.fixed) == compiled


MESSAGE = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x, n=None):
{body}
        return x
"""


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("print('in')\nx = x * 2", ""),
        ("print('in')\nx = x * x.sum().item()", "FC201"),
        ("if n is not None:\n    x = x * x.sum().item()\nprint('in')", ""),
        ("if n is not None:\n    print('in')\nx = x * x.sum().item()", "FC201"),
        ("for i in range(3):\n    x = x * x.sum().item()\nprint('in')", "FC"),
        ("print('in')\ny = x * 2\nif y.sum() > 3:\n    y = y * 0.5\nx = y + 1", ""),  # that break goes
    ],
)
def test_a_message_stays_where_another_break_of_the_function_does(body: str, stays: str) -> None:
    text = MESSAGE.format(body=textwrap.indent(body, " " * 8))
    result = patch(text, "net.py", load_rules(), Settings())
    (message,) = [f for f in result.found if f.code == "FC602"]
    assert (message.applicability == "safe") is not bool(stays), message.assumption
    assert stays in message.assumption  # also when a zone that is never compiled has taken the place of the other
    assert ("is_compiling()" in result.text) is not bool(stays)


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        ("for t in tqdm(range(3)):\n    x = x + t\nx = x * x.sum().item()", False),  # two graphs in place of none
        ("x = x * x.sum().item()\nfor t in tqdm(range(3)):\n    x = x + t", False),
        ("for t in tqdm(range(3)):\n    x = x * x.sum().item()", True),
        ("for t in tqdm(range(3)):\n    if n is not None:\n        x = x * x.sum().item()", False),
        ("for t in tqdm(range(3)):\n    x = x + t\nfor t in range(3):\n    x = x * x.sum().item()", True),
        ("for t in tqdm(list(range(3)), desc='how far it is'):\n    x = x * x.sum().item()", True),
        ("bar = tqdm(range(3))\nfor t in bar:\n    x = x + t\n    bar.set_postfix(loss=x.sum().item())", False),
    ],
)
def test_a_bar_stays_where_a_loop_of_the_function_breaks(body: str, stays: bool) -> None:
    text = "from tqdm import tqdm" + MESSAGE.format(body=textwrap.indent(body, " " * 8))
    result = patch(text, "net.py", load_rules(), Settings())
    (bar,) = [f for f in result.found if f.code == "FC613"]
    assert (bar.applicability == "safe") is not stays, bar.assumption
    assert ("breaks the graph as well, and stays" in bar.assumption) is stays
    assert ("is_compiling()" in result.text) is not stays


class _Sum(Rule):
    """Fixes of each call of ``f``, of which those of ``f(0)`` cannot be made."""

    code: ClassVar[str] = "FC999"
    name: ClassVar[str] = "sum"
    triggers: ClassVar[tuple[bytes, ...]] = (b"f",)
    listens_to: ClassVar[tuple[type[ast.AST], ...]] = (ast.Call,)
    where: ClassVar[Where] = Where.ANYWHERE
    costs: ClassVar[tuple[Cost, ...]] = ("graph break",)
    invalid: ClassVar[tuple[Example, ...]] = ()
    valid: ClassVar[tuple[NearMiss, ...]] = ()

    def check(self, node: ast.AST, facts: Facts) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        if ast.unparse(node.func) == "f":
            yield Finding(node, "a call", Fix((Replace(node, Code("}" if node.args else "g()")),)))


def test_a_rewrite_that_is_refused_costs_the_others_no_pass() -> None:
    text = "x = [f() for _ in range(2)]\n" * 14
    result = patch(text + "y = f(0)\n", "net.py", (_Sum(),), Settings())
    assert result.text == text.replace("f()", "g()") + "y = f(0)\n"
    (bug,) = result.bugs
    assert bug.line == 15 and "refused" in bug.message


SIZES = """\
import numpy as np
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x{parameter}):
        return x.relu().reshape(x.shape[0], np.prod(x.shape[1:]))
"""


@pytest.mark.parametrize(
    ("parameter", "beside", "imported"),
    [("", "", True), (", math=None", "", False), ("", "math.py", False), ("", "math/__init__.py", False)],
)
def test_math_is_imported_where_it_is_not(parameter: str, beside: str, imported: bool, tmp_path: Path) -> None:
    """Not where the name is taken, nor where a script would get a file beside it for it."""
    if beside:
        (tmp_path / beside).parent.mkdir(exist_ok=True)
        (tmp_path / beside).touch()
    text = SIZES.format(parameter=parameter)
    result = patch(text, str(tmp_path / "net.py"), load_rules(), Settings(unsafe=True))
    assert (result.text == "import math\n\n" + text.replace("np.prod", "math.prod")) is imported
    assert (result.text == text) is not imported
    (found,) = [f for f in result.found if f.code == "FC615"]
    assert ("`math` is not imported here" in found.assumption) is not imported


LOGGER = """
import torch
from torch import nn

class Lines:
    def {method}(self, text):
        self.kept = text

def get_logger(name):
    return Lines()

logger = get_logger(__name__)

class Net(nn.Module):
    def forward(self, x):
        logger.info(input())
        return x
"""


@pytest.mark.parametrize(("method", "named"), [("info", False), ("more", True)])
def test_no_setting_is_named_that_leaves_out_what_is_remembered(method: str, named: bool) -> None:
    result = patch(LOGGER.format(method=method), "net.py", load_rules(), Settings())
    (message,) = [f for f in result.found if f.code == "FC602"]
    assert ("ignore_logging_functions" in message.message) is named


def test_functions_that_nothing_compiles_are_counted() -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\ndef main(x):\n    if x.sum() > 0:\n        print(x)\n\n\n"
        "class Net(nn.Module):\n    def load(self, path):\n        print(path)\n\n"
        "    @torch.compiler.disable\n    def told(self, x):\n        print(x)\n\n"
        "    def forward(self, x):\n        self.told(x)\n        return main\n"
    )
    rules = load_rules()
    assert patch(text, "m.py", rules, Settings()).not_compiled == 2  # `load` and `told`
    assert find(text, "m.py", rules, Settings()).not_compiled == 2
    assert patch(text.replace("return main", "return x"), "m.py", rules, Settings()).not_compiled == 3


POSITIONS = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x, first, second, at: torch.Tensor):
        n = x.shape[1]
        try:
            first[:, at : at + n] = x
        except RuntimeError:
            first.zero_()
        second[:, at : at + n] = x
        return first + second
"""


def test_what_two_fixes_need_is_written_once_and_for_each() -> None:
    writes = ("first[:, at : at + n] = x", "second[:, at : at + n] = x")
    for kept in (writes, writes[:1], writes[1:]):
        text = POSITIONS
        for write in set(writes) - set(kept):
            text = text.replace(write, "pass")
        result = patch(text, "model.py", load_rules(), Settings(unsafe=True))
        assert result.bugs == ()
        assert result.text.count("_write_slice(x, ") == len(kept)
        assert result.text.count("def _write_slice") == 1


ITSELF = """\
import torch
import torch.nn as nn


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros((), dtype=torch.long))
        self.register_buffer("keys", torch.zeros(2, 8, 4))

    def step(self, x):
        self.step = self.step + x
        self.n += 1

    def forward(self, k):
        start = self.n.item()
        self.keys[:, start : start + k.shape[1]] = k
        self.step(k)
        return self.keys[:, : self.n.item()]
"""


def test_a_method_that_stores_under_its_own_name() -> None:
    result = patch(ITSELF, "cache.py", tuple(load_rules()), Settings())
    assert result.bugs == ()
    assert result.found


def test_a_comprehension_that_binds_the_name_that_it_goes_over() -> None:
    text = """\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x, masks):
        masks = [m > 0 for m in masks]
        masks = [x[masks].sum().item() for masks in masks if masks.any()]
        return x * sum(masks)
"""
    assert "FC201" in {f.code for f in patch(text, "net.py", load_rules(), Settings()).found}


@pytest.mark.parametrize("again", ["[part.crop() for part in self.parts]", "[self.parts[0] for _ in range(2)]"])
def test_a_list_that_is_made_again_from_itself(again: str) -> None:
    text = f"""\
import torch
from torch import nn

class Part(nn.Module):
    def crop(self):
        return self

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = [Part()]

    def crop(self):
        self.parts = {again}

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x * 2 if x.sum() > 0 else x
"""
    result = patch(text, "net.py", load_rules(), Settings())
    assert result.bugs == ()
    assert "FC101" in {f.code for f in result.found}
