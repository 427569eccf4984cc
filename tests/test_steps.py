"""The step of a function, compiled in its place: what a run has seen decides what it is given."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from torch.utils._pytree import tree_leaves

from patcher.engine import patch
from patcher.harness.run import _is_like
from patcher.observed import observations
from patcher.results import PatchResult
from patcher.run.observing import Observer
from patcher.settings import Extent, Settings
from rules import load_rules
from tests.test_observed import loaded, watched

RULE = next(rule for rule in load_rules() if rule.code == "FC712")
PREAMBLE = "import math\n\nimport numpy as np\nimport torch\nfrom torch import nn\n\n\n"


@pytest.fixture(autouse=True)
def only_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import builtins
    import importlib.machinery

    loader = importlib.machinery.SourceFileLoader
    monkeypatch.setattr(loader, "get_code", loader.get_code)
    monkeypatch.setattr(builtins, "_fix_compile_saw", None, raising=False)
    yield
    torch._dynamo.reset()


def stepped(text: str, function: str, run: Callable[[Any], Any], folder: Path) -> tuple[PatchResult, Any, Any]:
    """What becomes of ``text``, the module as it is and the patched one, after ``run`` was watched."""
    source = PREAMBLE + text
    module, observer = watched(source, folder)
    observer.on = True
    run(module)
    observer.on = False
    seen = observations(observer.observations())
    wanted = (Extent("watched.py", function, 0, 0, 0, 0, 0, 0),)
    result = patch(source, "watched.py", (RULE,), Settings(unsafe=True, observed=seen, extents=wanted))
    assert result.bugs == ()
    (folder / "patched.py").write_text(result.text)
    (folder / "plain.py").write_text(source)
    return result, loaded(folder / "plain.py"), loaded(folder / "patched.py")
