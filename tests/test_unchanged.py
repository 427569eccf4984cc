"""Does an expression give the same at ``# B`` as at ``# A``? Each hazard is a source; what is not shown is no."""

from __future__ import annotations

import ast
import textwrap

import pytest

from patcher.facts.effects.unchanged import Aspect, Unchanged
from tests.asking import facts_of

SAME = {
    "nothing in between": ("y", "y = x * 2 # A\nreturn y # B"),
    "a pure operator": ("y", "y = x * 2 # A\nz = torch.relu(y)\nreturn z + y # B"),
    "a layer of PyTorch": ("y", "y = x * 2 # A\nz = self.linear(y)\nreturn z + y # B"),
    "a function of the file that only reads": ("y", "y = x * 2 # A\nreads(y)\nreturn y # B"),
    "writes to another new tensor": ("y", "y = x * 2 # A\nz = torch.zeros(3)\nz.add_(1)\nz[0] = 2\nreturn y # B"),
    "a copy is written to": ("y", "y = x * 2 # A\nz = y.clone()\nz.add_(1)\nreturn y # B"),
    "code that is not read cannot reach a new tensor": ("y", "y = x * 2 # A\nunknown(x)\nreturn y # B"),
    "a size, whatever is written": ("x.shape[0]", "n = x.shape[0] # A\nx.add_(1)\nunknown(x)\nreturn n # B"),
    "a branch that binds another name": ("y", "y = x * 2 # A\nif flag:\n    z = 1\nreturn y # B"),
    "a binding that cannot come in between": ("y", "if flag:\n    y = x * 2 # A\n    return y # B\ny = x\nreturn y"),
    "an attribute that constructors set": ("self.width", "n = self.width # A\nunknown(x)\nreturn n # B"),
    "a number that a list holds too": ("n", "n = 3 # A\nheld = [n]\nheld[0] = 4\nreturn n # B"),
    "the loop makes it anew each turn": (
        "y",
        "for i in range(3):\n    y = x * i # A\n    z = y # B\n    y.add_(1)\nreturn z",
    ),
    "a no_grad block": ("y", "y = x * 2 # A\nwith torch.no_grad():\n    z = y.sum()\nreturn y # B"),
    "a container of numbers": ("y", "y = x * 2 # A\nheld = [1]\nheld.append(2)\nreturn y # B"),
    "numbers are copied into another tensor": (
        "y",
        "y = x * 2 # A\nz = torch.zeros(3)\nz[0] = y[0]\nz.add_(1)\nreturn y # B",
    ),
}
CHANGED = {
    "bound again": ("y", "y = x * 2 # A\ny = x\nreturn y # B"),
    "bound again on one way": ("y", "y = x * 2 # A\nif flag:\n    y = x\nreturn y # B"),
    "deleted": ("y", "y = x * 2 # A\ndel y\nreturn y # B"),
    "bound by a walrus": ("y", "y = x * 2 # A\nif (y := x).sum():\n    pass\nreturn y # B"),
    "bound by a loop": ("y", "y = x * 2 # A\nfor y in x:\n    pass\nreturn y # B"),
    "bound by an import": ("y", "y = x * 2 # A\nimport math as y\nreturn y # B"),
    "bound by a handler": ("y", "y = x * 2 # A\ntry:\n    reads(x)\nexcept ValueError as y:\n    pass\nreturn y # B"),
    "bound by a pattern": ("y", "y = x * 2 # A\nmatch x:\n    case [y]:\n        pass\nreturn y # B"),
    "bound by a nested function": (
        "y",
        "y = x * 2 # A\ndef turn():\n    nonlocal y\n    y = x\nturn()\nreturn y # B",
    ),
    "bound at the end of a turn": ("y", "y = x * 2 # A\nfor i in range(3):\n    z = y # B\n    y = x\nreturn z"),
    "a method in place": ("y", "y = x * 2 # A\ny.add_(1)\nreturn y # B"),
    "an element": ("y", "y = x * 2 # A\ny[0] = 1\nreturn y # B"),
    "an augmented assignment": ("y", "y = x * 2 # A\nz = y\nz += 1\nreturn y # B"),
    "matrix product in place": ("y", "y = x * 2 # A\nz = y\nz @= x\nreturn y # B"),
    "through another name": ("y", "y = x * 2 # A\nz = y\nz.mul_(2)\nreturn y # B"),
    "through a view": ("y", "y = x * 2 # A\nz = y.view(-1)[1:]\nz.zero_()\nreturn y # B"),
    "through numpy": ("y", "y = x.abs() # A\ny.numpy()[0] = 1\nreturn y # B"),
    "through numpy and a name": ("y", "y = x.abs() # A\na = y.numpy()\na[0] = 1\nreturn y # B"),
    "through out=": ("y", "y = x.abs() # A\ntorch.add(x, 1, out=y)\nreturn y # B"),
    "by the key of a sort": ("y", "y = x.abs() # A\nsorted([1], key=lambda _: y.add_(1))\nreturn y # B"),
    "by what a key is a name for": ("y", "y = x.abs() # A\ng = y.add_\nmax([1], key=g)\nreturn y # B"),
    "through _foreach_": ("y", "y = x.abs() # A\ntorch._foreach_add_([y], 1)\nreturn y # B"),
    "through __setitem__": ("y", "y = x.abs() # A\ny.__setitem__(0, 1)\nreturn y # B"),
    "through inplace=True": ("y", "y = x.abs() # A\nF.relu(y, inplace=True)\nreturn y # B"),
    "through a flag by position": ("y", "y = x.abs() # A\nF.relu(y, True)\nreturn y # B"),
    "through options": ("y", "y = x.abs() # A\nF.relu(y, **options)\nreturn y # B"),
    "through .data": ("y", "y = x.abs() # A\ny.data = x\nreturn y # B"),
    "through a list": ("y", "y = x.abs() # A\nheld = [y]\nheld[0].add_(1)\nreturn y # B"),
    "through a dict": ("y", 'y = x.abs() # A\nheld = {"y": y}\nheld["y"][0] = 1\nreturn y # B'),
    "through a list that was filled": (
        "y",
        "y = x.abs() # A\nheld = []\nheld.append(y)\nfor t in held:\n    t.add_(1)\nreturn y # B",
    ),
    "by a generator that is listed": ("y", "y = x.abs()\ng = (t.add_(1) for t in [y]) # A\nlist(g)\nreturn y # B"),
    "by a generator, turn by turn": (
        "y",
        "y = x.abs()\ng = (t.add_(1) for t in [y]) # A\nfor _ in g:\n    pass\nreturn y # B",
    ),
    "by a generator that is summed": ("y", "y = x.abs()\ng = (t.add_(1) for t in [y]) # A\nsum(g)\nreturn y # B"),
    "a mask, an element": ("m", "m = x > 0 # A\nm[0] = True\nreturn m # B"),
    "a mask, through a view": ("m", "m = x > 0 # A\nm.view(-1)[-1] = True\nreturn m # B"),
    "a mask, through numpy": ("m", "m = x > 0 # A\nm.numpy()[...] = True\nreturn m # B"),
    "through an object that keeps it": ("m", "m = x > 0\nkept = Kept(m) # A\nkept.value.fill_(True)\nreturn m # B"),
    "through a comprehension": ("y", "y = x.abs() # A\n[t.add_(1) for t in (y, x)]\nreturn y # B"),
    "through unpacking": ("y", "y = x.abs() # A\na, b = y, x\na.add_(1)\nreturn y # B"),
    "through a starred name": ("y", "y = x.abs() # A\n*a, b = [y, x]\na[0].add_(1)\nreturn y # B"),
    "through a choice": ("y", "y = x.abs() # A\nz = y if flag else x\nz.add_(1)\nreturn y # B"),
    "through or": ("y", "y = x.abs() # A\nz = None or y\nz.add_(1)\nreturn y # B"),
    "through an attribute": ("y", "y = x.abs() # A\nself.kept = y\nself.kept.add_(1)\nreturn y # B"),
    "through an attribute and code that is not read": ("y", "y = x.abs()\nself.kept = y # A\nunknown(x)\nreturn y # B"),
    "through a method of the class": ("y", "y = x.abs()\nself.kept = y # A\nself.bump()\nreturn y # B"),
    "through a closure": ("y", "y = x.abs()\ndef turn():\n    y.add_(1)\nz = 1 # A\nturn()\nreturn y # B"),
    "through a lambda": ("y", "y = x.abs()\nturn = lambda: y.add_(1) # A\nturn()\nreturn y # B"),
    "through a lambda's parameter": ("y", "y = x.abs()\nturn = lambda t: t.add_(1) # A\nturn(y)\nreturn y # B"),
    "through a function of the file": ("y", "y = x.abs() # A\nwrites(y)\nreturn y # B"),
    "through two functions of the file": ("y", "y = x.abs() # A\ncalls_writes(y)\nreturn y # B"),
    "through a function that was given it": ("y", "y = x.abs() # A\nunknown(y)\nreturn y # B"),
    "kept by a function and written by another": ("y", "y = x.abs()\nunknown(y) # A\nother()\nreturn y # B"),
    "through a generator": ("y", "y = x.abs() # A\nfor _ in generates(y):\n    z = y # B\nreturn z"),
    "through map": ("y", "y = x.abs() # A\nlist(map(writes, [y]))\nreturn y # B"),
    "through checkpoint": ("y", "y = x.abs() # A\ntorch.utils.checkpoint.checkpoint(writes, y)\nreturn y # B"),
    "through a context manager": ("y", "y = x.abs() # A\nwith manages(y):\n    pass\nreturn y # B"),
    "through what a with leaves": ("y", "with manages(x) as y:\n    z = y # A\nreturn y # B"),
    "a parameter, by code that is not read": ("x", "y = x # A\nunknown()\nreturn x # B"),
    "a parameter through another one": ("x", "y = x # A\nother.add_(1)\nreturn x # B"),
    "a buffer through a sweep": (
        "self.table",
        "y = self.table # A\nfor b in self.buffers():\n    b.add_(1)\nreturn y # B",
    ),
    "a buffer through getattr": ("self.table", "y = self.table # A\ngetattr(self, name).add_(1)\nreturn y # B"),
    "an attribute through setattr": ("self.n", "y = self.n # A\nsetattr(self, name, 3)\nreturn y # B"),
    "what constructors set, through setattr": (
        "self.width",
        "y = self.width # A\nsetattr(self, name, 3)\nreturn y # B",
    ),
    "an attribute through object": (
        "self.width",
        "y = self.width # A\nobject.__setattr__(self, 'width', 3)\nreturn y # B",
    ),
    "an attribute through its dict": ("self.width", "y = self.width # A\nself.__dict__['width'] = 3\nreturn y # B"),
    "an attribute through vars": ("self.width", "y = self.width # A\nvars(self).update(other)\nreturn y # B"),
    "an attribute through a method": ("self.n", "y = self.n # A\nself.grow()\nreturn y # B"),
    "an attribute through a property": ("self.n", "y = self.n # A\nz = self.growing\nreturn y # B"),
    "an attribute through another name": ("self.n", "me = self\ny = self.n # A\nme.n = 4\nreturn y # B"),
    "an attribute through __dict__": ("self.n", 'y = self.n # A\nself.__dict__["n"] = 4\nreturn y # B'),
    "a size, of what is resized": ("y.shape[0]", "y = x.abs()\nn = y.shape[0] # A\ny.resize_(2)\nreturn n # B"),
    "a size, of what gets a dimension": (
        "y.shape[0]",
        "y = x.abs()\nn = y.shape[0] # A\ny.unsqueeze_(0)\nreturn n # B",
    ),
    "a size, of what is bound again": ("y.shape[0]", "y = x.abs()\nn = y.shape[0] # A\ny = y[1:]\nreturn n # B"),
    "through .data in a function": ("y", "y = x.abs() # A\nswaps(y)\nreturn y # B"),
    "a size, of what a function resizes": ("y.shape[0]", "y = x.abs()\nn = y.shape[0] # A\nswaps(y)\nreturn n # B"),
    "through a builtin that is another function": ("y", "y = x.abs() # A\nround(y)\nreturn y # B"),
    "a list through one of its methods": ("held", "held = [1] # A\nput = held.__setitem__\nput(0, 2)\nreturn held # B"),
    "an element whose index changes": ("x[i]", "i = 0\ny = x[i] # A\ni += 1\nreturn x[i] # B"),
    "after an exception": (
        "y",
        "y = x.abs() # A\ntry:\n    y.add_(1)\n    reads(x)\nexcept ValueError:\n    pass\nreturn y # B",
    ),
    "in a finally": ("y", "y = x.abs() # A\ntry:\n    reads(x)\nfinally:\n    y.add_(1)\nreturn y # B"),
    "in a loop's else": ("y", "y = x.abs() # A\nfor i in range(2):\n    pass\nelse:\n    y.add_(1)\nreturn y # B"),
    "in an argument of the reader": ("y", "y = x.abs() # A\nreturn torch.add(y.add_(1), y) # B"),
    "a random value": ("torch.rand(3)", "y = torch.rand(3) # A\nreturn torch.rand(3) # B"),
    "through operator": ("y", "y = x.abs() # A\noperator.iadd(y, 1)\nreturn y # B"),
    "an element, through operator": ("y", "y = x.abs() # A\noperator.setitem(y, 0, 1)\nreturn y # B"),
    "through operator in a function of the file": ("y", "y = x.abs() # A\nadds(y)\nreturn y # B"),
    "through map in a function of the file": ("y", "y = x.abs() # A\nmaps(y)\nreturn y # B"),
    "through the key of sorted in a function of the file": ("y", "y = x.abs() # A\norders(y)\nreturn y # B"),
    "through functools in a function of the file": ("y", "y = x.abs() # A\nreduces(y)\nreturn y # B"),
    "through itertools": ("y", "y = x.abs() # A\nlist(itertools.starmap(writes, [(y,)]))\nreturn y # B"),
    "through the key of a list's sort": ("y", "y = x.abs() # A\n[y].sort(key=writes)\nreturn y # B"),
    "through iter": ("y", "y = x.abs() # A\ng = y.add_\nnext(iter(functools.partial(g, 1), 2))\nreturn y # B"),
    "through the default of a lambda": ("y", "y = x.abs()\nturn = lambda t=y: t.add_(1) # A\nturn()\nreturn y # B"),
    "through the default of a function": (
        "y",
        "y = x.abs()\ndef turn(a=0, *, t=y):\n    t.add_(1)\nz = 1 # A\nturn()\nreturn y # B",
    ),
    "through a lambda that is handed on": (
        "y",
        "y = x.abs()\nturn = lambda: print(y.add_(1)) # A\nunknown(turn)\nreturn y # B",
    ),
    "through a function that is handed on": (
        "y",
        "y = x.abs()\ndef turn():\n    y.add_(1)\nz = 1 # A\nunknown(turn)\nreturn y # B",
    ),
    "through a default of what is handed on": (
        "y",
        "y = x.abs()\ndef turn(t=y):\n    t.add_(1)\nz = 1 # A\nunknown(turn)\nreturn y # B",
    ),
    "through a method of a class inside": (
        "y",
        "y = x.abs()\nclass Turn:\n    def go(self):\n        y.add_(1)\nz = 1 # A\nTurn().go()\nreturn y # B",
    ),
    "through a namespace": ("y", "y = x.abs()\nn = types.SimpleNamespace(v=y) # A\nn.v.add_(1)\nreturn y # B"),
    "through a namespace, at the end of a turn": (
        "x",
        "z = x # A\nfor i in range(3):\n    n = types.SimpleNamespace(v=x)\n    z = x[i] # B\n    n.v.add_(1)\n",
    ),
    "through a dict of keywords": ("y", "y = x.abs()\nn = dict(k=y) # A\nfor v in n.values(): v.add_(1)\nreturn y # B"),
    "of another dtype with its module": ("self.table", "y = self.table # A\nself.double()\nreturn y # B"),
    "of another dtype with its module, by to": ("self.table", "y = self.table # A\nself.to(x)\nreturn y # B"),
    "through all local names": ("y", "y = x.abs() # A\nlocals()['y'].add_(1)\nreturn y # B"),
    "through all local names, kept": ("y", "y = x.abs()\nn = locals() # A\nn['y'].add_(1)\nreturn y # B"),
    "through vars": ("y", "y = x.abs()\nn = vars() # A\nn['y'].add_(1)\nreturn y # B"),
    "through code in a text": ("y", "y = x.abs() # A\nexec('y.add_(1)')\nreturn y # B"),
    "formatted by a class of the file": ("self.n", 'y = self.n # A\nprint(f"{meter}")\nreturn y # B'),
}
MODULE = """
import functools
import itertools
import operator
import types

import torch
import torch.nn as nn
import torch.nn.functional as F

def reads(t):
    return t.sum()

def writes(t):
    t.add_(1)

def adds(t):
    operator.iadd(t, 1)

def maps(t):
    return list(map(writes, [t]))

def orders(t):
    return sorted([t], key=writes)

def reduces(t):
    return functools.reduce(operator.iadd, [t, 1])

def swaps(t):
    t.data = t.data[:1]

def round(t):
    t.add_(1)

def calls_writes(t):
    return writes(t)

def generates(t):
    for i in range(3):
        t.add_(1)
        yield i

class Meter:
    def __init__(self, model):
        self.model = model
    def __format__(self, spec):
        self.model.n = 5
        return "meter"

class Model(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.n = 3
        self.linear = nn.Linear(3, 3)
        self.register_buffer("table", torch.zeros(3))

    def bump(self):
        self.kept.add_(1)

    def grow(self):
        self.n = 4

    @property
    def growing(self):
        self.n = 5
        return 1

    def forward(self, x, flag, other, name, unknown, manages, options, meter):
"""


def answer(asked: str, body: str, aspect: Aspect = Aspect.CONTENTS) -> str:
    """Why ``asked`` may change from the statement with ``# A`` to that with ``# B``."""
    source = MODULE + textwrap.indent(body, " " * 8)
    facts = facts_of(source)
    lines = source.splitlines()
    at = {mark: next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {mark}")) for mark in "AB"}
    statements = [n for n in ast.walk(facts.syntax.tree) if isinstance(n, ast.stmt)]
    since, until = (min((s for s in statements if s.lineno == at[m]), key=lambda s: s.end_lineno or 0) for m in "AB")
    function = facts.syntax.function_of(until)
    assert function is not None
    e = next(
        n
        for n in ast.walk(until if asked in ast.unparse(until) else function)
        if isinstance(n, ast.expr) and ast.unparse(n) == asked
    )
    return facts.ask(Unchanged).why_changed(e, since, until, aspect)


@pytest.mark.parametrize("title", SAME)
def test_what_cannot_change_is_the_same(title: str) -> None:
    assert answer(*SAME[title]) == ""


@pytest.mark.parametrize("title", CHANGED)
def test_what_may_change_is_not_the_same(title: str) -> None:
    assert answer(*CHANGED[title]) != ""
