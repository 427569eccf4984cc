"""Who may take an error: what is called where it is caught, as far as it can be that which raises it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise

NET = """
import torch.nn as nn
class Net(nn.Module):
    def forward(self, x{parameters}):
        raise ValueError
"""
HEAD = """
import torch.nn as nn
class Head(nn.Module):
    def forward(self, x):
        return x
"""
TUNER = """
class Tuner:
    def tuned(self, fn, x):
        for size in (1, 2):
            try:
                fn(x{keyword})
            except ValueError:
                continue
            return size
"""


def _why(files: dict[str, str], function: str, folder: Path) -> str:
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for parent in path.relative_to(folder).parents:
            if parent.name:
                (folder / parent / "__init__.py").touch()
    project = Project([summarise(ast.parse(text), str(folder / name)) for name, text in files.items()])
    return project.catching.why(function, ("ValueError",))


def _parts(keyword: str = ", size=size", parameters: str = ", **options", **more: str) -> dict[str, str]:
    """Two packages in one: a model, and a tuner beside a model of its own."""
    files = {
        "kit/nets/net.py": NET.replace("{parameters}", parameters),
        "kit/tuning/tuner.py": TUNER.replace("{keyword}", keyword),
        "kit/tuning/head.py": HEAD,
    }
    return {**files, **{f"kit/{name}.py": text for name, text in more.items()}}


def test_tuner_of_another_part(tmp_path: Path) -> None:
    assert _why(_parts(), "kit.nets.net.Net.forward", tmp_path) == ""
    assert _why(_parts(), "kit.tuning.head.Head.forward", tmp_path)


@pytest.mark.parametrize(
    "files",
    [
        _parts(use="from kit.nets.net import Net\nfrom kit.tuning.tuner import Tuner"),
        _parts(**{"tuning/use": "from kit.nets.net import Net\nfrom kit.tuning.tuner import Tuner"}),
        _parts(use="from kit.tuning.tuner import Tuner"),
        {k: v for k, v in _parts().items() if "head" not in k},
        {k.removeprefix("kit/"): v for k, v in _parts().items()},
    ],
    ids=[
        "somebody sees both",
        "somebody beside it sees both",
        "somebody outside sees it",
        "a part without models",
        "no package around both",
    ],
)
def test_tuner_that_may_get_the_model(files: dict[str, str], tmp_path: Path) -> None:
    function = "nets.net.Net.forward" if "nets/net.py" in files else "kit.nets.net.Net.forward"
    assert _why(files, function, tmp_path)


HOLDER = """
class Holder:
    def __init__(self, net):
        self.group = self.date = self.sub = net
"""
REPLACING = """
import datetime
{before}
def replaced(text, other=None):
    def found(m):
        try:
            {call}
        except ValueError:
            return ""
    {after}
"""
NOT_OWN = {
    "something is handed over": ("", "return datetime.date.today().date(text.date())", "return found(text)"),
    "what it was handed": ("import math", "return math.floor(other).date()", "return found(text)"),
    "a library by name only": ("def datetime(x): return x", "return datetime(text).date()", "return found(text)"),
}


@pytest.mark.parametrize(("before", "call", "after"), NOT_OWN.values(), ids=NOT_OWN)
def test_objects_that_may_hold_a_model(before: str, call: str, after: str, tmp_path: Path) -> None:
    assert _replacing(before, call, after, tmp_path)


def _replacing(before: str, call: str, after: str, folder: Path) -> str:
    text = REPLACING.replace("{before}", before).replace("{call}", call).replace("{after}", after)
    files = {"net.py": NET.replace("{parameters}", ""), "holder.py": HOLDER, "replacing.py": text}
    return _why(files, "net.Net.forward", folder)


TESTING = """
{before}
def caught(fn, x):
    try:
        return fn(x)
    except ValueError:
        return x
"""


@pytest.mark.parametrize(
    ("name", "before", "counts"),
    [
        ("testing_tools.py", "import unittest", False),
        ("testing_tools.py", "", True),
        ("tools.py", "import unittest", True),
        ("test_tools.py", "", False),
    ],
)
def test_what_tests_catch_does_not_count(name: str, before: str, counts: bool, tmp_path: Path) -> None:
    files = {"net.py": NET.replace("{parameters}", ""), name: TESTING.replace("{before}", before)}
    assert bool(_why(files, "net.Net.forward", tmp_path)) is counts


ERRORS = """
class NetError(Exception): pass
class NoNode(NetError, KeyError): pass
class Odd(made()): pass
"""


@pytest.mark.parametrize(
    ("caught", "raised", "takes"),
    [
        ("kit.errors.NetError", "kit.errors.NoNode", True),
        ("kit.NetError", "kit.nets.NoNode", True),  # handed on by a package
        ("LookupError", "kit.errors.NoNode", True),
        ("Exception", "kit.errors.NetError", True),
        ("AttributeError", "kit.errors.Odd", True),
        ("kit.ERRORS", "kit.errors.NetError", True),  # a tuple, as far as is known
        ("AttributeError", "kit.errors.raised", True),
        ("requests.HTTPError", "kit.errors.NetError", True),
        ("kit.ERRORS", "ValueError", True),
        ("AttributeError", "kit.errors.NetError", False),
        ("ValueError", "kit.NoNode", False),
        ("kit.errors.NoNode", "kit.errors.NetError", False),
        ("kit.NetError", "RuntimeError", False),
    ],
)
def test_which_error_a_handler_takes(caught: str, raised: str, takes: bool, tmp_path: Path) -> None:
    for package in ("kit", "kit/nets"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    files = {"kit/errors.py": ERRORS, "kit/nets/__init__.py": "from kit.errors import NoNode\n"}
    project = Project([summarise(ast.parse(text), str(tmp_path / name)) for name, text in files.items()])
    assert project.catching.stop([caught], [raised]) is takes


def test_two_classes_of_one_name_are_not_told_apart(tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/__init__.py").touch()
    files = {"kit/a.py": "class E(ValueError): pass\n", "kit/b.py": "class E(KeyError): pass\n"}
    project = Project([summarise(ast.parse(text), str(tmp_path / name)) for name, text in files.items()])
    assert project.catching.stop(["KeyError"], ["kit.E"])


ALIASES = """
Base = ValueError
class Coded(Base): pass
class Range(ArithmeticError): pass
class Once(Exception): pass
class Twice(Once, ValueError): pass
Once = Twice
"""


@pytest.mark.parametrize(
    ("caught", "raised"),
    [
        ("ValueError", "kit.errors.Coded"),  # what its base is called is a class elsewhere, and another name here
        ("ArithmeticError", "kit.errors.Range"),
        ("ValueError", "kit.errors.Once"),
        ("kit.errors.Once", "kit.errors.Twice"),
    ],
)
def test_names_of_errors_that_are_others(caught: str, raised: str, tmp_path: Path) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit/__init__.py").touch()
    other = "class Base: pass\nclass ArithmeticError(Exception): pass\n"
    files = {"kit/errors.py": ALIASES, "kit/other.py": other}
    project = Project([summarise(ast.parse(text), str(tmp_path / name)) for name, text in files.items()])
    assert project.catching.stop([caught], [raised])


@pytest.mark.parametrize(
    ("handler", "takes"),
    [
        ("errors.kinds()", True),
        ("(KeyError, *KINDS)", True),
        ("wanted", True),
        ("ValueError", True),
        ("KeyError", False),
        ("Exception", False),  # as any: what compiled code raises is taken as well
    ],
)
def test_handlers_of_what_nobody_can_tell(handler: str, takes: bool, tmp_path: Path) -> None:
    use = "import errors\nKINDS = errors.KINDS\ndef run(model, x, wanted):\n    try:\n        return model(x)\n"
    files = {"net.py": NET.replace("{parameters}", ""), "use.py": f"{use}    except {handler}:\n        return x\n"}
    assert bool(_why(files, "net.Net.forward", tmp_path)) is takes


USED = {
    "kit/tools.py": "def tried(fn, x):\n    try:\n        return fn(x)\n    except ValueError:\n        return None\n",
    "kit/net.py": NET.replace("{parameters}", ""),
    "kit/plain.py": "def plain(x):\n    return x\n",
}
USES = {
    "what calls it has one": (
        "use",
        "from kit.tools import tried\nfrom kit.net import Net\ndef f(x):\n    return tried(Net(), x)\n",
        "tried",
    ),
    "nothing calls it": ("use", "from kit.plain import plain\ndef f(x):\n    return plain(x)\n", "tried"),
    "a method of that name is no use": ("use", "def f(x):\n    return x.tried(1)\n", "tried"),
    "it is handed on by what it is called through": (
        "use",
        "from kit.tools import tried\nfrom kit.net import Net\ndef g(fn, x):\n    return tried(fn, x)\n"
        "def f(x):\n    return g(Net(), x)\n",
        "tried",
    ),
}


@pytest.mark.parametrize(("name", "text", "by"), USES.values(), ids=USES)
def test_a_function_may_be_given_a_model_beside_it(name: str, text: str, by: str, tmp_path: Path) -> None:
    why = _why({**USED, f"kit/{name}.py": text}, "kit.net.Net.forward", tmp_path)
    assert f"kit.tools.{by}" in why
