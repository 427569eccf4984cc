"""Errors that docstrings tell of, and for which functions that counts."""

from __future__ import annotations

import ast

import pytest

from patcher.facts.project.documented import documented
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.syntax.tree import Syntax

GOOGLE = """Raises:
        ValueError: if it is.
        errors.Custom: if not.

    Returns:
        KeyError: no
"""
NUMPY = """Raises
    ------
    ValueError
        If it is.
    errors.Custom
        If not.

    Returns
    -------
    KeyError
"""
SPHINX = """:raises ValueError: if it is
    :raises errors.Custom: if not
    :returns: a KeyError
"""


@pytest.mark.parametrize("form", [GOOGLE, NUMPY, SPHINX])
def test_forms(form: str) -> None:
    tree = ast.parse(f'def f(x):\n    """Does it.\n\n    {form}\n    """\n    return x\n')
    (function,) = (n for n in tree.body if isinstance(n, ast.FunctionDef))
    found = documented(function, Syntax(tree))
    assert found >= {"ValueError", "Custom"}
    assert "KeyError" not in found


def test_prose_about_raising_is_no_list() -> None:
    tree = ast.parse('def f(x):\n    """This raises the ValueError of g, if any."""\n    return x\n')
    (function,) = (n for n in tree.body if isinstance(n, ast.FunctionDef))
    assert not documented(function, Syntax(tree))


SOURCE = """
import torch
from torch import nn

def outer(x):
    '''Does it.

    Raises:
        LookupError: if it is not there.
    '''
    return Model()(x)

class Inner(nn.Module):
    def forward(self, x):
        return check(x)

class Model(nn.Module):
    '''A model.

    Raises:
        ValueError: for bad input.
    '''
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return self.inner(x)

def check(x):
    return x

def apart(x):
    return x
"""


@pytest.mark.parametrize(
    ("function", "error", "by"),
    [
        ("m.check", "ValueError", "m.Model.forward"),
        ("m.check", "UnicodeError", "m.Model.forward"),  # one kind of ValueError
        ("m.check", "TypeError", None),
        ("m.apart", "ValueError", None),
        ("m.outer", "IndexError", "m.outer"),
    ],
)
def test_who_tells_of_it(function: str, error: str, by: str | None) -> None:
    project = Project([summarise(ast.parse(SOURCE), "m.py")])
    assert project.documented.by(function, error) == by
