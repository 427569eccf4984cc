"""What ``from module import *`` brings, as far as the text of that module says it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from patcher.facts.syntax.packages import module_name
from patcher.facts.syntax.tree import Syntax

COMMON = """\
import os.path
import torch
import torch.nn.functional as F
from torch import nn

_hidden = 1
SIZES = (1, 2)
try:
    import flash
except ImportError:
    flash = None


class Conv(nn.Module):
    inner = 1


def helper(x):
    local = x
    return local


[turn for turn in SIZES]
"""


def of(folder: Path, text: str = "from .common import *\n", **files: str) -> Syntax:
    for name, said in {"__init__": "", **files}.items():
        (folder / f"{name}.py").write_text(said)
    path = folder / "model.py"
    path.write_text(text)
    return Syntax(ast.parse(text), module_name(str(path))[1])


def names(syntax: Syntax) -> dict[str, str] | None:
    return None if syntax.has_star else syntax.imports


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pack").mkdir()
    return tmp_path / "pack"


def test_definitions_variables_and_imports(folder: Path) -> None:
    assert names(of(folder, common=COMMON)) == {
        "Conv": "pack.common.Conv",
        "F": "torch.nn.functional",
        "SIZES": "pack.common.SIZES",
        "flash": "pack.common.flash",
        "helper": "pack.common.helper",
        "nn": "torch.nn",
        "os": "os",
        "torch": "torch",
    }


@pytest.mark.parametrize("line", ["from pack.common import *\n", "from .between import *\n", "from . import *\n"])
def test_ways_to_it(line: str, folder: Path) -> None:
    found = names(
        of(folder, line, common=COMMON, between="from .common import *\n", __init__="from .common import *\n")
    )
    assert found is not None and found["Conv"] == "pack.common.Conv" and found["nn"] == "torch.nn"


def test_a_file_beside_a_script(tmp_path: Path) -> None:
    (tmp_path / "common.py").write_text(COMMON)
    tools = tmp_path / "tools"
    tools.mkdir()
    for path in (tmp_path / "main.py", tools / "main.py"):
        syntax = Syntax(ast.parse("from common import *"), module_name(str(path))[1])
        assert syntax.imports["helper"] == "common.helper" and not syntax.has_star


def test_two_that_may_be_meant(folder: Path) -> None:
    """``common`` is the one beside the file where that is run as a script, and the one above where it is imported."""
    (folder.parent / "common.py").write_text(COMMON)
    assert names(of(folder, "from common import *\n")) is not None
    assert names(of(folder, "from common import *\n", common="def sum(x):\n    return 0\n")) is None


def test_what_is_listed(folder: Path) -> None:
    listed = COMMON + '\n__all__ = ["helper", "_hidden"]\n__all__ += ("nn",)\n'
    assert names(of(folder, common=listed)) == {
        "_hidden": "pack.common._hidden",
        "helper": "pack.common.helper",
        "nn": "torch.nn",
    }


def test_one_that_is_a_module_as_well(folder: Path) -> None:
    found = names(of(folder, "from . import *\n", common=COMMON, __init__="from .common import helper\n"))
    assert found == {"common": "pack.common", "helper": "pack.common.helper"}


def test_of_python(folder: Path) -> None:
    found = names(of(folder, "from math import *\n"))
    assert found is not None and found["pow"] == "math.pow" and found["floor"] == "math.floor"


def test_what_the_module_binds_itself_is_its_own(folder: Path) -> None:
    text = "from .common import *\n\ndef helper(x):\n    return 1\n\nSIZES = ()\n"
    found = names(of(folder, text, common=COMMON))
    assert found is not None and "helper" not in found and "SIZES" not in found and "Conv" in found


@pytest.mark.parametrize(
    "more",
    [
        "globals()['sum'] = min\n",
        "vars().update(sum=min)\n",
        "exec('sum = min')\n",
        "import sys\nsys.modules[__name__].sum = min\n",
        "from torch import *\n",
        "from elsewhere import *\n",
        "from .model import *\n",
        "from .broken import *\n",
        "__all__ = [n for n in dir() if n[0] != '_']\n",
        "__all__ = ['helper']\n__all__.append('sum')\n",
        "__all__ = ['helper', *SIZES]\n",
    ],
)
def test_nobody_can_say(more: str, folder: Path) -> None:
    syntax = of(folder, "from .common import *\nsum([])\n", common=COMMON + more, broken="def f(:\n")
    assert names(syntax) is None
    assert not syntax.is_builtin(syntax.by_type[ast.Name][0])  # type: ignore[arg-type]


def test_a_module_of_the_folder_that_is_called_like_a_builtin(folder: Path) -> None:
    assert names(of(folder, "from . import *\n", sum="")) is None


@pytest.mark.parametrize(
    "said",
    ["def sum(x):\n    return 0\n", "from numpy import sum\n", "for sum in (): pass\n", "(sum := 1)\n",
     "def f():\n    global sum\n    sum = 1\n", "sum = 1\ndel sum\n", "[sum := 1 for _ in ()]\n", "import sum\n",
     "if 1:\n    class sum: pass\n", "with open('x') as sum: pass\n", "try: pass\nexcept OSError as sum: pass\n"],
)  # fmt: skip
def test_a_builtin_that_it_binds(said: str, folder: Path) -> None:
    syntax = of(folder, "from .common import *\nsum([])\nmax([])\n", common=said)
    told = {n.id: syntax.is_builtin(n) for n in syntax.by_type[ast.Name] if isinstance(n, ast.Name)}
    assert told == {"sum": False, "max": True} and not syntax.has_star
