"""FC502 through the files of a project: a comparison here, the operator that gets it there."""

from __future__ import annotations

import ast

import pytest

from patcher.engine import patch
from patcher.facts.project.index import Project, summarise
from patcher.settings import Settings
from rules.fc502_size_comparison_flag.rule import SizeComparisonFlag
from tests.dynamo import PREAMBLE

ATTENTION = """
class Attention(nn.Module):
    def forward(self, q, k, *, causal: bool = False):
        return self.attend(q, k, causal and self.training)

    def attend(self, q, k, flag):
        return F.scaled_dot_product_attention(q, k, k, is_causal=flag)

    def masked(self, q, k, flag):
        return F.scaled_dot_product_attention(q, k, k, mask(q) if flag else None, is_causal=not flag)

def attend(q, k, causal=False):
    return F.scaled_dot_product_attention(q, k, k, is_causal=causal)
"""
BLOCK = """
from attention import Attention

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, q, k, causal=False):
        return q + self.attention(q, k, causal=causal)
"""
FILES = {"attention.py": ATTENTION, "block.py": BLOCK}
FLAG = "q.shape[2] == k.shape[2]"


def net(made: str, call: str, *imports: str) -> str:
    lines = "".join(f"from {module} import {name}\n" for module, _, name in (i.partition(".") for i in imports))
    return f"""{PREAMBLE}{lines}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = {made}

    def forward(self, q, k, attention: "Attention" = None):
        return {call}
"""


@pytest.mark.parametrize(
    ("made", "call", "imported"),
    [
        ("Attention()", "self.part(q, k, causal=FLAG)", "attention.Attention"),
        ("Attention()", "self.part.attend(q, k, FLAG)", "attention.Attention"),
        ("Block()", "self.part(q, k, FLAG)", "block.Block"),
        ("nn.ModuleList(Block() for _ in range(2))", "self.part[0](q, k, FLAG)", "block.Block"),
        ("None", "attention.attend(q, k, flag=FLAG)", "attention.Attention"),
        ("None", "attend(q, k, FLAG)", "attention.attend"),
    ],
)
def test_a_flag_is_followed_into_another_file(made: str, call: str, imported: str) -> None:
    text = net(made, call.replace("FLAG", FLAG), imported)
    expected = net(made, call.replace("FLAG", f"True if {FLAG} else False"), imported)
    assert patched(text) == expected


@pytest.mark.parametrize(
    ("made", "call", "imported"),
    [
        ("Attention()", "self.part.masked(q, k, FLAG)", "attention.Attention"),
        ("Attention()", "self.part(q, k, scale=FLAG)", "attention.Attention"),
        ("Attention()", "self.part(q, FLAG)", "attention.Attention"),
        ("Attention()", "self.part.attend(q, k, q == k)", "attention.Attention"),
        ("Attention()", "self.part(q, k, causal=FLAG)", "elsewhere.Attention"),
    ],
)
def test_another_argument_or_another_class_is_none(made: str, call: str, imported: str) -> None:
    text = net(made, call.replace("FLAG", FLAG), imported)
    assert patched(text) == text


def patched(text: str) -> str:
    files = {path: PREAMBLE + source for path, source in FILES.items()} | {"net.py": text}
    project = Project([summarise(ast.parse(source), path) for path, source in files.items()])
    result = patch(text, "net.py", (SizeComparisonFlag(),), Settings(), project)
    assert result.bugs == ()
    return result.text
