"""What a module is called where folders have no ``__init__.py``."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from patcher.facts.syntax.packages import module_name
from patcher.facts.syntax.tree import Syntax
from patcher.patching.runner import run
from patcher.settings import Settings
from rules import load_rules


def written(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


@pytest.mark.parametrize(
    ("statement", "means"),
    [
        ("from models.ops import f", "ops.f"),
        ("from models import ops as f", "ops"),
        ("import models.ops as f", "ops"),
        ("from models.deep.ops import f", "ops.f"),
        ("from models.package.ops import f", "package.ops.f"),
        ("from models.package import f", "package.f"),
        ("from ..models.ops import f", "ops.f"),
        ("from .ops import f", "ops.f"),
        (f"from {'.' * 99}math import f", "math.f"),
        ("from ops import f", "ops.f"),
        ("from regular.ops import f", "regular.ops.f"),
        ("from models.missing import f", "models.missing.f"),
        ("from torch.ops import f", "torch.ops.f"),
        ("from json.ops import f", "json.ops.f"),
        ("import f", "f"),
    ],
)
def test_a_folder_that_is_no_package(tmp_path: Path, statement: str, means: str) -> None:
    written(
        tmp_path,
        "models/net.py",
        "models/ops.py",
        "models/deep/ops.py",
        "models/package/__init__.py",
        "models/package/ops.py",
        "regular/__init__.py",
        "regular/ops.py",
        "torch/ops.py",
        "json/ops.py",
    )
    package = module_name(str(tmp_path / "models" / "net.py"))[1]
    assert Syntax(ast.parse(statement), package).imports == {"f": means}
    if means.endswith("ops.f") and statement.startswith("from models."):
        file = tmp_path / f"{statement.split()[1].replace('.', '/')}.py"
        assert f"{module_name(str(file))[0]}.f" == means


def test_a_module_comes_before_a_folder(tmp_path: Path) -> None:
    written(tmp_path, "models/ops.py", "models.py", "net.py")
    package = module_name(str(tmp_path / "net.py"))[1]
    assert Syntax(ast.parse("from models.ops import f"), package).imports == {"f": "models.ops.f"}


def test_by_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "models/ops.py", "models/net.py")
    monkeypatch.chdir(tmp_path / "models")
    package = module_name("net.py")[1]
    assert Syntax(ast.parse("from models.ops import f"), package).imports == {"f": "ops.f"}


def test_a_module_by_all_of_its_name(tmp_path: Path) -> None:
    written(tmp_path, "models/ops.py", "net.py")
    package = module_name(str(tmp_path / "net.py"))[1]
    syntax = Syntax(ast.parse("import models.ops\nimport torch.nn\nmodels.ops.f(torch.nn.Linear)"), package)
    found = {e.attr: syntax.qualified(e) for e in syntax.by_type[ast.Attribute]}
    assert (found["f"], found["Linear"]) == ("ops.f", "torch.nn.Linear")


@pytest.mark.parametrize(
    ("where", "statement", "means"),
    [
        ("net.py", "from models.math import f", "models.math.f"),
        ("net.py", "from models import math as f", "models.math"),
        ("net.py", "import models.math as f", "models.math"),
        ("net.py", "from models.deep.torch import f", "deep.torch.f"),
        ("net.py", "from models.numpy import f", "models.numpy.f"),
        ("net.py", "from math import f", "math.f"),
        ("models/net.py", "from .math import f", "models.math.f"),
        ("models/net.py", "from . import math as f", "models.math"),
        ("models/deep/net.py", "from ..math import f", "models.math.f"),
        ("models/net.py", "from math import f", "models.math.f"),
        ("models/net.py", "from math import sqrt as f", "math.sqrt"),
        ("models/net.py", "from .logging import f", "logging.f"),
        ("models/package/net.py", "from .math import f", "package.math.f"),
        ("models/package/net.py", "from math import f", "math.f"),
    ],
)
def test_called_like_a_library(tmp_path: Path, where: str, statement: str, means: str) -> None:
    written(
        tmp_path,
        where,
        "models/math.py",
        "models/deep/torch.py",
        "models/numpy/__init__.py",
        "models/package/__init__.py",
        "models/package/math.py",
    )
    (tmp_path / "models/math.py").write_text("def f(x): return x\n")
    package = module_name(str(tmp_path / where))[1]
    assert Syntax(ast.parse(statement), package).imports == {"f": means}


def test_a_library_beside_its_namesake(tmp_path: Path) -> None:
    (tmp_path / "math.py").write_text("def f(x): return x\nlimit: int = 3\n")
    package = module_name(str(tmp_path / "net.py"))[1]
    syntax = Syntax(ast.parse("import math\nmath.f(math.sqrt(math.limit))"), package)
    found = {e.attr: syntax.qualified(e) for e in syntax.by_type[ast.Attribute]}
    own = f"{tmp_path.name}.math"
    assert found == {"f": f"{own}.f", "sqrt": "math.sqrt", "limit": f"{own}.limit"}


def test_the_name_of_a_namesake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "models/math.py", "models/torch/__init__.py", "logging/random.py")
    monkeypatch.chdir(tmp_path / "models")
    assert module_name("math.py")[0] == module_name(str(tmp_path / "models/math.py"))[0] == "models.math"
    assert module_name("torch/__init__.py")[0] == "torch"
    assert module_name(str(tmp_path / "logging/random.py"))[0] == f"{tmp_path.name}.logging.random"


def test_the_name_does_not_depend_on_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "package/__init__.py", "package/helper.py", "package/deep/__init__.py", "package/deep/model.py")
    monkeypatch.chdir(tmp_path / "package" / "deep")
    for path in ("model.py", "./model.py", "../deep/model.py", str(tmp_path / "package/deep/model.py")):
        name, package = module_name(path)
        assert name == "package.deep.model"
        assert Syntax(ast.parse("from ..helper import f"), package).imports == {"f": "package.helper.f"}
    assert module_name("../helper.py")[0] == "package.helper"


CHECK = """
def check(x: torch.Tensor):
    if torch.isnan(x).any():
        raise ValueError("nan")
    return x * 2
"""
MODEL = """
from .helper import check

class Net(nn.Module):
    def forward(self, x):
        try:
            return check(x)
        except ValueError:
            return x
"""


def test_a_check_in_another_file_is_seen_from_within_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the caller catches the error, the check stays as it is, by whatever path the files are named."""
    written(tmp_path, "package/__init__.py")
    head = "import torch\nimport torch.nn as nn\n"
    (tmp_path / "package/helper.py").write_text(head + CHECK)
    (tmp_path / "package/model.py").write_text(head + MODEL)
    monkeypatch.chdir(tmp_path / "package")
    for paths in (["."], ["model.py", "helper.py"], [str(tmp_path / "package")]):
        results = run(paths, tuple(load_rules()), Settings(), jobs=1)
        assert not any(r.changed for r in results)
        assert any(f.code == "FC102" for r in results if r.patch is not None for f in r.patch.remaining)
