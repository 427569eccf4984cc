"""Where tensors are asked for numbers: each form with what a run of it shows, and what looks like one."""

from __future__ import annotations

import ast

import pytest
import torch

from docs.tables import captured
from patcher.facts import Facts
from patcher.facts.numbers.asked_numbers import AskedNumbers
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.tables.captured import CAPTURED, CODE
from patcher.facts.tables.number_takers import BUILTINS, FUNCTIONS, GIVING_UP, METHODS
from patcher.harness.listener import Listener, listening
from patcher.settings import Settings

AROUND = """\
import math
import operator
import numpy as np
import torch
from other import Cache

def other(x) -> torch.Tensor:
    return x.sum()

def plain(x) -> bool:
    return x.dim() > 2

class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor, counts: torch.Tensor, cache: Cache, state, rows: list):
{body}
        return x
"""
OTHER = """\
from dataclasses import dataclass
import torch

@dataclass
class Cache:
    position: torch.Tensor
    width: int
    last: torch.Tensor | None = None
"""


def ways(body: str) -> list[str]:
    """The ways in which the statements ask, in order."""
    indented = "\n".join(f"        {line}" for line in body.splitlines())
    files = {"model.py": AROUND.format(body=indented), "other.py": OTHER}
    project = Project([summarise(ast.parse(text), path) for path, text in files.items()])
    facts = Facts(ast.parse(files["model.py"]), "model.py", project, Settings(), frozenset())
    (forward,) = (f for f in facts.syntax.functions if f.name == "forward")
    return [asked.way for asked in facts.ask(AskedNumbers).of(forward)]


#: Statements, and the one way in which they ask.
ASKING = {
    "start = counts[0]\nx[:, start : start + 1] = 0": "tensor as end of a slice",
    "x = x[: counts.max()]": "tensor as end of a slice",
    "x = x[cache.position[0] :]": "tensor as end of a slice",
    "x = x[: cache.last]": "tensor as end of a slice",
    "x = x[:, slice(counts[0])]": "tensor as end of a slice",
    "n = state.position.clone()\nx = x[: state.position]": "tensor as end of a slice",
    "parts = [c.sum() for c in rows]\nn = counts.unbind()\nx = x[: n[0]]": "tensor as end of a slice",
    "for row, n in zip(x, counts):\n    y = row[:n]": "tensor as end of a slice",
    "y = [x[i, :n] for i, n in enumerate(counts)]": "tensor as end of a slice",
    "y = [c for c in counts if c > 1]": "if of a tensor",
    "y = {c: x for c in counts if not c > 1}": "if of a tensor",
    "y = x[counts.argmax()]": "tensor as index of one row",
    "y = [1, 2, 3][counts.sum()]": "tensor as index of a list",
    "for i in range(counts.max()):\n    x = x + i": "range of a tensor",
    "y = torch.zeros(counts.sum(), 3)": "tensor as size",
    "y = torch.zeros((3, counts.sum()))": "tensor as size",
    "y = torch.zeros(size=(3, counts.sum()))": "tensor as size",
    "y = x.new_zeros(3, counts.max() + 1)": "tensor as size",
    "y = torch.arange(counts.max())": "tensor as end of arange",
    "y = torch.arange(0, end=counts.max())": "tensor as end of arange",
    "y = x.view(counts.sum(), -1)": "tensor as size of a view",
    "y = x.expand(counts.sum(), -1, -1)": "tensor as size of a view",
    "y = x.repeat(1, counts[0])": "tensor as size of a view",
    "y = x.split(counts[0])": "tensor as size of a part",
    "y = torch.nn.functional.pad(x, (0, 9 - counts.max()))": "tensor as width of padding",
    "y = torch.full_like(x, counts.sum())": "tensor as fill value",
    "y = [None] * counts.sum()": "list as often as a tensor says",
    "y = 2 in counts": "number in a tensor",
    "if counts.sum() in [1, 6]:\n    x = x * 2": "if of a tensor",
    "y = torch.where(x > 0)": "where",
    "y = torch.unique(counts)": "unique",
    "y = counts.unique_consecutive()": "unique_consecutive",
    "y = x.masked_select(x > 0)": "masked_select",
    "if other(x):\n    x = x * 2": "if of a tensor",
    "assert other(x), f'{x.shape}'": "if of a tensor",
    "assert not other(x)": "if of a tensor",
    "assert other(x) and x.dim() == 2": "if of a tensor",
    "for i in x.nonzero():\n    x = x * 2": "nonzero",
    "for i, j in enumerate((x > 0).nonzero()):\n    x = x * 2": "nonzero",
    "y = state.found[state.sizes != 0]\nstate.sizes.clone()": "mask index",
    "if state.sizes.clone() is x:\n    mask = state.sizes != 0\n    y = state.found[:, ~mask]": "mask index",
    "n = counts.cpu()\ny = int(n[0])": "int",
    "y = any(counts > 1)": "any of a tensor",
    "y = all(c > 1 for c in counts)": "all of a tensor",
    "y = sorted(counts)": "sorted tensor",
    "y = str(counts.sum())": "text of a tensor",
    "y = '%d of %s' % (3, counts.sum())": "percent of a tensor",
    "y = counts.sum() or 2": "and of a tensor",
    "y = not counts.any()": "not of a tensor",
    "y = 0 < counts.sum() < 9": "chain of a tensor",
    "while (x < 3).all():\n    x = x * 2": "while of a tensor that is made",
    "y = math.sqrt(counts.sum())": "math of a tensor",
    "y = bool(counts.any())": "bool",
    "y = list(map(int, counts))": "int",
    "y = [int(c) for c in counts]": "int",
    "y = int(cache.position)": "int",
    "n = state.n\nif state:\n    n = counts[0]\ny = float(n)": "int",
    "n = state.n\nif state:\n    n = counts[0]\nif isinstance(n, torch.Tensor):\n    y = float(n)": "int",
    "y = torch.equal(x, x * 1)": "equal",
    "y = operator.index(counts[0])": "equal",
    "y = int(counts.cpu().numpy()[0])": "int of an array",
    "n = counts.numpy()\ny = x[: n[0]]": "array as end of a slice",
    "y = torch.zeros(np.prod(x.shape))": "array as size",
}
#: What asks nothing, or is not known to.
SILENT = (
    "kept = dict()\nfor n in counts:\n    kept[n] = x",
    "y = x[: x.shape[0] // 2, : x.size(1)]",
    "y = x[: cache.width]",
    "y = x[: state.position]",
    "y = x[counts]",
    "y = x[counts > 1]",
    "y = x[torch.arange(3), counts]",
    "y = max(counts), min(counts.sum(), 3), sum(counts), abs(counts)",
    "a, b = counts\nfor c in counts:\n    x = x * c",
    "y = list(counts), tuple(counts), [c * 2 for c in counts]",
    "y = f'{counts.sum()}'",
    "y = torch.zeros(len(counts), counts.dim(), counts.numel())",
    "y = x.clamp(max=counts.sum()) ** counts[0]",
    "y = torch.tensor([counts.sum(), 1])",
    "y = torch.from_numpy(counts.numpy())[0]",
    "y = math.prod(counts)",
    "y = [n for n in range(x.dim())]",
    "y = cache.last and 2\nz = not cache.last",
    "y = counts in rows",
    "y = counts.sum() in [1, 6]",
    "y = x[: rows[0]]",
    "y = '%d' % x.shape[0]",
    "assert other(x)",
    "assert other(x), 'text'",
    "assert x.dim() == 2 and other(x), 'text'",
    "assert plain(x), f'{x.shape}'",
    "y = torch.where(x > 0, x, 0)",
    "if plain(x):\n    x = x * 2",
    "y = rows[state.kind == 2]",
    "mask = state.kind == 2\ny = rows[mask]",
    "n = state.n\nif state:\n    n = counts[0]\nif isinstance(n, (int, float)):\n    y = float(n)",
    "n = state.n\nif state:\n    n = counts[0]\nif isinstance(n, torch.Tensor):\n    pass\nelse:\n    y = float(n)",
    "y = int(math.ceil(x.shape[0] / 2))",
)


@pytest.mark.parametrize("body", ASKING)
def test_what_asks_is_seen(body: str) -> None:
    assert ways(body) == [ASKING[body]]


@pytest.mark.parametrize("body", SILENT)
def test_what_does_not_ask_is_not_told(body: str) -> None:
    assert ways(body) == []


ASSERTED = {
    "other(x), f'{x.shape}'": True,
    "not none(x)": True,
    "other(x) and x.dim() == 2": True,
    "other(x)": False,
    "other(x), 'text'": False,
    "x.dim() == 2 and other(x), 'text'": False,
}


@pytest.mark.slow
@pytest.mark.parametrize("test", ASSERTED)
def test_which_assertions_end_the_graph(test: str) -> None:
    told = ways(f"assert {test.replace('none', 'other')}")
    space: dict[str, object] = {}
    asserting = f"def way(x):\n    y = x * 2\n    assert {test}\n    return y\n"
    exec(f"def other(x):\n    return x.sum() > 0\ndef none(x):\n    return x.sum() < 0\n{asserting}", space)
    torch._dynamo.reset()
    listener = Listener(str)
    with listening(listener, False):
        torch.compile(space["way"], backend="eager")(torch.ones(2, 2))
    assert bool(listener.breaks) is bool(told) is ASSERTED[test]


def test_each_way_has_been_run_and_ends_the_graph() -> None:
    told = {*ASKING.values(), *BUILTINS.values(), *GIVING_UP}
    told |= {way for _, way in (*FUNCTIONS.values(), *METHODS.values())}
    assert told <= set(CODE)
    newest = CAPTURED["2.13"]
    assert [way for way in told if "default" in newest[way]] == []


@pytest.mark.parametrize("way", sorted(GIVING_UP))
def test_a_function_is_given_up_after_it(way: str) -> None:
    space: dict[str, object] = {}
    exec(captured.texts()[way], space)
    x, counts = torch.arange(12.0).view(4, 3), torch.tensor([2, 3, 1])
    torch._dynamo.reset()
    listener = Listener(str)
    with listening(listener, False), torch.no_grad():
        torch.compile(space["way"], backend="eager")(x, x % 2 > 0, counts, torch.tensor(2))
    assert listener.dropped
