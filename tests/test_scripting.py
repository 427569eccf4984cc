"""A method that reads configuration is none that TorchScript compiles: what is said of it is what a run shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from patcher.runner import run
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import loaded

NET = """
import warnings
class Config:
    scale = 2
class Net(nn.Module):
    def __init__(self, config: Config = Config()):
        super().__init__()
        self.config = config
        self.scale = 2
    def forward(self, x):
        warnings.warn("slow")
        return x * {read}
"""
SCRIPTS = "import torch\nfrom package.net import Net\n\n\n@torch.jit.script\ndef twice(x):\n    return x * 2\n"


@pytest.mark.parametrize(("read", "scripts"), [("self.config.scale", False), ("self.scale", True)])
def test_configuration_is_nothing_for_torchscript(read: str, scripts: bool, tmp_path: Path) -> None:
    text = f"import torch\nimport torch.nn as nn\n{NET.format(read=read)}"
    (tmp_path / "package").mkdir()
    for name, source in (("__init__", ""), ("net", text), ("use", SCRIPTS)):
        (tmp_path / "package" / f"{name}.py").write_text(source, encoding="utf-8")
    with loaded(tmp_path / "package" / "net.py", "net_of_scripting") as module:
        if scripts:
            torch.jit.script(module.Net())
        else:
            with pytest.raises(RuntimeError, match="config"):
                torch.jit.script(module.Net())
    rules = [rule for rule in load_rules() if rule.code == "FC602"]
    (found,) = [f for r in run([str(tmp_path)], rules, Settings(), fixes=False) if r.patch for f in r.patch.found]
    assert found.applicability == ("unsafe" if scripts else "safe")
