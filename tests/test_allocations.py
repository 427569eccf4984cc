"""Where the buffers of a cache come from, and which of them FC303 marks: one small cache in many spellings."""

from __future__ import annotations

import ast
import textwrap

import pytest

from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules.fc303_cache_buffer_address.rule import CacheBufferAddress
from tests.dynamo import PREAMBLE

ZEROS = "torch.zeros(b, room, size)"
KEYS = f"self.keys = {ZEROS}"
LISTED = f"self.keys = [{ZEROS} for _ in range(2)]"
UPDATE = """
end = self.filled + keys.shape[1]
self.keys[:, self.filled : end] = keys
self.filled = end
return self.keys[:, :end]
"""
OF_LIST = UPDATE.replace("self.keys[", "self.keys[0][")
STACKED = UPDATE.replace("[:, self", "[:, :, self")


def method(signature: str, body: str) -> str:
    return f"\n    def {signature}:\n{textwrap.indent(body.strip(), ' ' * 8)}\n"


def cache(init: str, *methods: str, head: str = "class M:", update: str = UPDATE, before: str = "") -> str:
    """A cache ``M`` that is filled by ``update``, with an initialiser and further methods."""
    initial = method("__init__(self, b, room, size, given=None)", f"{init}\nself.filled = 0")
    return f"{before}\n{head}{initial}{method('update(self, keys)', update)}{''.join(methods)}"


def writing(statement: str) -> str:
    """``update`` with one more write."""
    return UPDATE.replace("self.filled = end", f"{statement}\nself.filled = end")


def starting(statement: str) -> str:
    """``update`` with ``statement`` before everything."""
    return f"{statement}\n{UPDATE}"


#: How many marks are written.
MARKED = {
    "plain": (1, cache(KEYS)),
    "made in compiled code": (1, cache(KEYS) + "\nf = torch.compile(lambda x: M(1, 2, 3).update(x))\n"),
    "kept by a module": (
        1,
        "class Net(nn.Module):\n    def __init__(self):\n        self.cache = M(1, 2, 3)\n" + cache(KEYS),
    ),
    "base classes that hold nothing": (1, cache(KEYS, head="class M(abc.ABC, object):", before="import abc")),
    "slots": (1, cache(KEYS, head='class M:\n    __slots__ = ("keys", "filled")\n')),
    "a name that Python mangles": (
        1,
        cache(KEYS.replace("keys", "__keys"), update=UPDATE.replace("self.keys", "self.__keys")),
    ),
    "zeros under its own name": (1, cache("self.keys = zeros(b, room, size)", before="from torch import zeros")),
    "zeros like what is given": (1, cache("self.keys = torch.zeros_like(given)", update=STACKED)),
    "two branches": (2, cache(f"if b:\n    {KEYS}\nelse:\n    self.keys = torch.zeros(1, room, size)")),
    "a second try": (2, cache(f"try:\n    {KEYS}\nexcept RuntimeError:\n    self.keys = torch.zeros(1, room, size)")),
    "on a device": (1, cache(f'with torch.device("cpu"):\n    {KEYS}')),
    "over several lines": (1, cache("self.keys = torch.zeros(\n    b, room, size,  # comment\n)\n# about filled")),
    "two names for one": (1, cache(f"self.keys = self.values = {ZEROS}")),
    "one of them, twice": (1, cache(f"self.keys = [{ZEROS}] * 2", update=OF_LIST)),
    "appended twice": (2, cache("self.keys = []" + f"\nself.keys.append({ZEROS})" * 2, update=OF_LIST)),
    "an explicit break": (1, cache(KEYS, update=starting("torch._dynamo.graph_break()"))),
    "an array of numpy's beside it": (
        1,
        cache(f"{KEYS}\nself.m = np.zeros((2, 3))", update=writing("self.m[0, 1] = end"), before="import numpy as np"),
    ),
    "a list of integers beside it": (1, cache(f"{KEYS}\nself.n = [0] * 3", update=writing("self.n[0] = end"))),
    "a dict beside it": (1, cache(f"{KEYS}\nself.n = {{}}", update=writing("self.n[0, 1] = end"))),
}

#: Where a buffer may be another one, or stands where no mark can be.
OTHERS = {
    "a descriptor": cache(KEYS, head="class M:\n    keys = Field()\n"),
    "a descriptor above": "class B:\n    keys = Field()\n" + cache(KEYS, head="class M(B):"),
    "a property below": cache(KEYS) + "\nclass N(M):\n    @property\n    def keys(self):\n        return 3\n",
    "a property": cache(KEYS, "\n    @property\n    def keys(self):\n        return 1\n"),
    "all stores are watched": cache(KEYS, method("__setattr__(self, n, v)", "object.__setattr__(self, n, v)")),
    "a base class from outside": cache(
        KEYS, head="class M(Generic[T]):", before='from typing import Generic, TypeVar\nT = TypeVar("T")'
    ),
    "stored by any name": cache(KEYS, method("set(self, n, v)", "setattr(self, n, v)")),
    "stored by an inner function": cache(f"def go():\n    {KEYS}\ngo()"),
    "stored by a coroutine": cache(KEYS, "\n    async def again(self):\n        self.keys = 1\n"),
    "behind a semicolon": cache(f"{KEYS}; self.x = 1"),
    "behind a colon": cache(f"if b: {KEYS}"),
    "a generator": cache(f"self.keys = ({ZEROS} for _ in range(2))", update=OF_LIST),
    "pairs": cache(f"self.keys = [({ZEROS}, {ZEROS})]", update=UPDATE.replace("self.keys[", "self.keys[0][0][")),
    "written over what is given": cache("self.keys = torch.zeros(b, room, size, out=given)"),
    "a list that is added to": cache(f"{LISTED}\nself.keys += [{ZEROS}]", update=OF_LIST),
    "the best rows, under a condition": cache(
        KEYS,
        method("reorder(self, rows)", "if rows is not None:\n    self.keys = self.keys.index_select(0, rows)"),
    ),
    "moved, and stored from outside": cache(KEYS, method("to(self, d)", "self.keys = self.keys.to(d)"))
    + "\ndef f(m, x):\n    m.keys = x\n",
    "made anew at each step": cache(KEYS, update=starting("self.keys = torch.zeros(1, 2, 3)")),
    "made anew at each step, by a method": cache(
        KEYS, method("ensure(self)", "self.keys = torch.zeros(1, 2, 3)"), update=starting("self.ensure()")
    ),
    "frozen by an option": cache(KEYS) + '\nf = torch.compile(lambda x: x, options={"freezing": True})\n',
}

SILENT = {
    "marked, below a base class that nobody knows": cache(
        f"{KEYS}\ntorch._dynamo.mark_static_address(self.keys)", head="class M(X):", before="from x import X"
    ),
    "marked before it is kept": cache(f"k = {ZEROS}\ntorch._dynamo.mark_static_address(k)\nself.keys = k"),
    "marked under another name": cache(
        f"{KEYS}\nd.mark_static_address(self.keys)", before="import torch._dynamo.decorators as d"
    ),
    "marked by map": cache(f"{LISTED}\nlist(map(torch._dynamo.mark_static_address, self.keys))", update=OF_LIST),
    "marked in pairs": cache(
        f"{LISTED}\nself.values = [{ZEROS}]\nfor k, v in zip(self.keys, self.values):\n"
        "    torch._dynamo.mark_static_address(k)\n    torch._dynamo.mark_static_address(v)",
        update=OF_LIST,
    ),
    "marked by a function": cache(KEYS)
    + "\ndef f(m):\n    for t in [m.keys]:\n        torch._dynamo.mark_static_address(t)\n",
    "marked by a class below": cache(KEYS)
    + "\nclass N(M):\n    def __init__(self):\n        super().__init__(1, 2, 3)\n"
    + "        torch._dynamo.mark_static_address(self.keys)\n",
    "a dict in a list's clothing": cache(f"self.keys = list({{{ZEROS}: 1}})", update=OF_LIST),
    "some are missing": cache(
        f"self.keys = [{ZEROS} if i else None for i in range(2)]", update=UPDATE.replace("self.keys[", "self.keys[1][")
    ),
    "made or missing": cache(f"{KEYS} if b else None"),
    "given or made": cache(f"self.keys = given if given is not None else {ZEROS}"),
    "made by what is given": cache("self.keys = given.new_zeros(b, room, size)"),
    "a parameter": cache(f"self.keys = nn.Parameter({ZEROS})"),
    "a buffer": cache(f"self.keys = nn.Buffer({ZEROS})"),
    "zeros of our own": cache("self.keys = zeros(b, room, size)", before="def zeros(*s):\n    return torch.ones(s)\n"),
    "torch is a parameter": cache("torch = given\n" + KEYS),
    "for TorchScript": cache(KEYS, head="@torch.jit.script\nclass M:"),
}


def patched(text: str) -> PatchResult:
    result = patch(text, "example.py", (CacheBufferAddress(),), Settings(unsafe=True))
    assert result.bugs == ()
    return result


@pytest.mark.parametrize(("marks", "source"), MARKED.values(), ids=MARKED)
def test_what_is_new_is_marked_once(marks: int, source: str) -> None:
    text = PREAMBLE + source
    result = patched(text)
    assert len(result.fixed) == 1
    assert result.text.count("mark_static_address") - text.count("mark_static_address") == marks
    ast.parse(result.text)
    again = patched(result.text)
    assert (again.text, again.found) == (result.text, ())


@pytest.mark.parametrize("source", [s for _, s in MARKED.values()], ids=MARKED)
def test_no_mark_runs_in_compiled_code(source: str) -> None:
    text = PREAMBLE + source
    added = [line for line in patched(text).text.splitlines() if line not in text.splitlines()]
    depth = 0
    for line in added:
        indent = len(line) - len(line.lstrip())
        if line.strip() == "if not torch.compiler.is_compiling():":
            depth = indent + 1
        else:
            assert 0 < depth <= indent, line


@pytest.mark.parametrize("source", [*SILENT.values(), *OTHERS.values()], ids=[*SILENT, *OTHERS])
def test_what_is_no_question_is_left_alone(source: str) -> None:
    text = PREAMBLE + source
    result = patched(text)
    assert (result.text, result.found) == (text, ())
