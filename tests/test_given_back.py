"""What functions give back, for those who call them in other files: masks."""

from __future__ import annotations

import ast

import pytest

from patcher.facts.project.index import Project, summarise
from patcher.finding import find
from patcher.settings import Settings
from rules import load_rules

GIVES = {
    "return torch.zeros(3, dtype=torch.bool)": {"mask"},
    "mask = torch.zeros(3, dtype=torch.bool)\nmask[0] = 1\nmask = mask.view(1, 3)\nreturn x, mask": {"mask@1"},
    "if x is None:\n    return x, torch.ones(3, dtype=bool)\nkept = ~x.bool()\nreturn x, kept[:2]": {"mask@1"},
    "return x > 0": set(),  # of numbers, one of Python
    "mask = x.bool()\nmask = x\nreturn mask": set(),
    "if x is None:\n    return x\nreturn x.bool()": set(),
    "return x.to(torch.int64)": set(),
    "return x": set(),
}
HELPERS = """\
import torch

def dense(x):
    mask = torch.zeros(x.shape[0], dtype=torch.bool)
    mask[0] = True
    return x, mask
"""
MODEL = """\
import torch
from torch import nn
from helpers import dense

class Net(nn.Module):
    def forward(self, x):
        h, mask = dense(x)
        h = h[mask]
        return h * 2
"""


@pytest.mark.parametrize("body", GIVES)
def test_what_is_given_back(body: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    (function,) = summarise(ast.parse(f"import torch\n\ndef f(x):\n{lines}"), "example.py").functions
    assert function.gives == GIVES[body]


def test_it_is_known_in_another_file() -> None:
    files = {"helpers.py": HELPERS, "model.py": MODEL}
    project = Project([summarise(ast.parse(text), path) for path, text in files.items()])
    found = find(MODEL, "model.py", load_rules(), Settings(), project).found
    told = {(f.line, f.code) for f in found}
    assert (8, "FC208") in told
    assert 7 not in {line for line, _ in told}
