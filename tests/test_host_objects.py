"""What Dynamo lacks for lists of texts, texts of sizes and kept properties: each is run, as is what looks so."""

from __future__ import annotations

import ast

import pytest
import torch

from patcher.facts.project.index import Project, summarise
from patcher.facts.tables.host_api import LISTS_OF_TEXTS_SINCE
from patcher.finding import find
from patcher.harness.worker import Listener, listening
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import INSTALLED

HEAD = """\
import re
import torch
from functools import cached_property


class Kept:
    def __init__(self):
        self.scale = 2.0

    @cached_property
    def twice(self):
        return 2 * self.scale

    @property
    def asked(self):
        return 2 * self.scale


class Own(torch.nn.Module):
    @cached_property
    def table(self):
        return torch.ones(3)

    def forward(self, x, text: str, data: bytes, kept: Kept):
        y = x * 1
        {does}
        return y * 2
"""
#: From PyTorch 2.14 on, graphs change these lists.
LISTED = (
    "text.split(',').pop()",
    "names = text.split(','); names.append('d')",
    "names = text.rsplit(',')[1:]; names.pop(0)",
    "names = text.splitlines(); y = [names.pop(i) for i in (0,)] and y",
)
BREAKING = (
    "names = data.split(b','); names.reverse()",
    "names = data.splitlines(); names.append(b'd')",
    "names = text.encode().rsplit(b','); names.pop()",
    "str(x.shape[0])",
    "n = x.shape[0]; repr(n)",
    "str(x.shape)",
    "key = ','.join(f'{s}' for s in [x.shape, y.shape])",
    "y = y * kept.twice",
    "y = y * self.table",
)
TRACED = (
    "names = [*text.split(',')]; names.pop()",
    "names = list(text.split(',')); names.append('d')",
    "names = re.split(',', text); names.pop()",
    "names = text.split(','); names = names + ['d']",
    "names = sorted(text.split(',')); names.pop()",
    "parts = list(x.split(1)); parts.pop()",
    "text.split(',').index('a')",
    "f'{x.shape[0]}'",
    "f'{x.shape}'",
    "str(x.dim())",
    "','.join(f'{n}' for n in x.shape)",
    "','.join(f'{n}' for n in ['a', 'b'])",
    "y = y * kept.asked",
)


def breaks(does: str) -> bool:
    space: dict[str, object] = {}
    exec(HEAD.format(does=does), space)
    model = space["Own"]()  # type: ignore[operator]
    torch._dynamo.reset()
    listener = Listener(str)
    with listening(listener, False):
        way = torch.compile(model, backend="eager")
        for n in (2, 4, 5):
            way(torch.ones(n, 3), "a,b,c", b"a,b", space["Kept"]())  # type: ignore[operator]
    return bool(listener.breaks)


def told(does: str, version: tuple[int, int] = INSTALLED) -> list[str]:
    result = find(HEAD.format(does=does), "example.py", load_rules(), Settings(target_torch=version))
    assert not result.bugs
    return [f.code for f in result.found]


@pytest.mark.parametrize("version", [(2, 13), (2, 14)])
@pytest.mark.parametrize("does", (*LISTED, *BREAKING))
def test_it_is_told(does: str, version: tuple[int, int]) -> None:
    taken = does in LISTED and version >= LISTS_OF_TEXTS_SINCE
    assert set(told(does, version)) == (set() if taken else {"FC611"})


@pytest.mark.parametrize(
    "does",
    (
        *TRACED,
        "y = y * other(kept).twice",
        "if x.dim() > 3: raise ValueError('of ' + str(x.shape))",
        "str(self.scale.shape)",
    ),
)
def test_it_is_not(does: str) -> None:
    assert "FC611" not in told(does)


@pytest.mark.slow
@pytest.mark.parametrize("does", BREAKING)
def test_the_graph_ends(does: str) -> None:
    assert breaks(does)


@pytest.mark.slow
@pytest.mark.parametrize("does", LISTED)
def test_a_list_of_texts_is_changed(does: str) -> None:
    assert breaks(does) is (INSTALLED < LISTS_OF_TEXTS_SINCE)


@pytest.mark.slow
@pytest.mark.parametrize("does", TRACED)
def test_the_graph_goes_on(does: str) -> None:
    assert not breaks(does)


def test_a_property_of_another_file() -> None:
    files = {
        "words.py": "from functools import cached_property\n\nclass Words:\n    @cached_property\n"
        "    def start(self):\n        return 3\n",
        "model.py": "from torch import nn\nfrom words import Words\n\ndef words_of(name):\n    return Words()\n\n"
        "class Net(nn.Module):\n    def forward(self, x, name):\n        words = words_of(name)\n"
        "        return x * words.start\n",
    }
    for more, codes in (("", ["FC611"]), ("class Other:\n    def start(self):\n        return 4\n", [])):
        texts = {**files, "model.py": files["model.py"] + more}
        project = Project([summarise(ast.parse(text), path) for path, text in texts.items()])
        found = find(texts["model.py"], "model.py", load_rules(), Settings(), project).found
        assert [f.code for f in found] == codes


def test_one_that_the_initialiser_reads_is_there() -> None:
    source = HEAD.format(does="y = y * self.table").replace(
        "    @cached_property\n    def table",
        "    def __init__(self):\n        super().__init__()\n        self.table\n\n"
        "    @cached_property\n    def table",
    )
    assert [f.code for f in find(source, "example.py", load_rules(), Settings()).found] == []
