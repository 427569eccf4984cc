"""Names that stand for ``torch._dynamo.graph_break``, and names that only seem to."""

from __future__ import annotations

import ast

import pytest

from patcher.facts import Facts
from patcher.facts.caching.breaks import GraphBreaks
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.settings import Settings

IMPORT = "from torch._dynamo import graph_break as _pause\n"
CALL = "import torch\n\nclass Memory:\n    def append(self):\n        _pause()\n"
IN_PLACE = CALL.replace("_pause()", "torch._dynamo.graph_break()")

SURE = {
    "itself": IN_PLACE,
    "under a guard": CALL.replace(
        "_pause()",
        "if _pause is not None and torch.compiler.is_compiling():\n            _pause()",
    )
    + IMPORT,
    "an import in the method": CALL.replace("_pause()", "from torch._dynamo import graph_break\n        graph_break()"),
    "a name with a stand-in": f"try:\n    {IMPORT}except ImportError:\n    def _pause():\n        pass\n" + CALL,
    "a function": CALL + "def _pause():\n    torch._dynamo.graph_break()\n",
    "an alias of an alias": CALL + IMPORT.replace("_pause", "_stop") + "_pause = _stop\n",
}
UNSURE = {
    "an attribute by its name": CALL + "_pause = getattr(torch._dynamo, 'graph_break', lambda: None)\n",
    "a global that a function sets": IMPORT + CALL + "def quiet():\n    global _pause\n    _pause = print\n",
    "globals()": IMPORT + CALL + "def quiet(name):\n    globals()[name] = print\n",
    "a second import": IMPORT + "from time import sleep as _pause\n" + CALL,
    "a second import, first": "from time import sleep as _pause\n" + IMPORT + CALL,
    "an import from elsewhere in the method": IMPORT
    + CALL.replace("_pause()", "from time import time as _pause\n        _pause()"),
    "a parameter": IMPORT + CALL.replace("append(self)", "append(self, _pause)"),
    "a loop": IMPORT + "for _pause in (print,):\n    pass\n" + CALL,
    "an augmented assignment": IMPORT + "_pause += 1\n" + CALL,
    "a tuple": IMPORT + "_pause, rest = print, 1\n" + CALL,
    "a pattern": IMPORT + "match print:\n    case _pause:\n        pass\n" + CALL,
    "a class": IMPORT + "class _pause:\n    pass\n" + CALL,
    "a choice that may have an effect": "import torch\n_pause = getattr(torch._dynamo, 'graph_break', print)\n" + CALL,
    "a star": IMPORT.replace("_pause", "pause") + "from quiet import *\n" + CALL.replace("_pause", "pause"),
    "a decorator": CALL + "@counted\ndef _pause():\n    torch._dynamo.graph_break()\n",
    "a function that does more": CALL + "def _pause():\n    print()\n    torch._dynamo.graph_break()\n",
    "a function that calls itself": CALL + "def _pause():\n    _pause()\n",
    "PyTorch's own, replaced": IN_PLACE + "def quiet():\n    torch._dynamo.graph_break = print\n",
    "another torch": IN_PLACE.replace("import torch\n", "import torch\nimport elsewhere as torch\n"),
}
#: What the module has, and what another one does with it.
ELSEWHERE = {
    "an alias that is replaced": (IMPORT + CALL, "import memory\nmemory._pause = print\n"),
    "PyTorch's own, replaced": (IN_PLACE, "import torch\ntorch._dynamo.graph_break = print\n"),
}


def is_break(source: str, *others: str) -> bool:
    """Whether the last statement of ``append`` breaks the graph and does nothing else."""
    trees = [ast.parse(text) for text in (source, *others)]
    project = Project([summarise(tree, f"{'other' * i or 'memory'}.py") for i, tree in enumerate(trees)])
    facts = Facts(trees[0], "memory.py", project, Settings(), frozenset())
    (method,) = (f for f in facts.syntax.by_type[ast.FunctionDef] if getattr(f, "name", "") == "append")
    assert isinstance(method, ast.FunctionDef)
    return facts.ask(GraphBreaks).is_break(method.body[-1])


@pytest.mark.parametrize("name", SURE)
def test_a_break(name: str) -> None:
    assert is_break(SURE[name])


@pytest.mark.parametrize("name", UNSURE)
def test_maybe_something_else(name: str) -> None:
    assert not is_break(UNSURE[name])


@pytest.mark.parametrize("name", ELSEWHERE)
def test_another_file_has_a_say(name: str) -> None:
    source, other = ELSEWHERE[name]
    assert is_break(source)
    assert not is_break(source, other)
