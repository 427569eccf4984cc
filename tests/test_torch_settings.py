"""Settings of PyTorch as fixes: tried by running, written where the model is compiled; silence with one in force."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from patcher.diagnose.places import Places
from patcher.edit.engine import patch
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.facts.tables.captured import CAPTURED
from patcher.harness.failures import MissingSettingError
from patcher.harness.worker import in_force
from patcher.patching.analysis import Analysis
from patcher.search.judged import Configuration
from patcher.search.writing import written
from patcher.settings import Settings, TorchSetting, torch_setting
from rules import load_rules

ROOT = Path(__file__).resolve().parent.parent
SCALARS = TorchSetting("config", "capture_scalar_outputs")
SHAPES = TorchSetting("config", "capture_dynamic_output_shape_ops")

# --- what a setting is --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setting",
    [
        SCALARS,
        TorchSetting("config", "force_parameter_static_shapes", False),
        TorchSetting("config", "recompile_limit", 64),
        TorchSetting("argument", "dynamic"),
        TorchSetting("member", "reorderable_logging_functions", "builtins.print"),
        TorchSetting("member", "ignore_logging_functions", "logging.Logger.info"),
    ],
)
def test_a_setting_is_what_its_code_says(setting: TorchSetting) -> None:
    assert torch_setting(setting.written) == setting


def test_what_is_no_setting_or_leaves_a_choice_is_none() -> None:
    for code in ("torch._dynamo.config.recompile_limit = N", "torch._dynamo.maybe_mark_dynamic(x, 0)", "x = 1"):
        assert torch_setting(code) is None


# --- in force in a worker -----------------------------------------------------------------------------------------


def test_settings_are_in_force_and_end() -> None:
    config = torch._dynamo.config
    before = config.capture_scalar_outputs, set(config.reorderable_logging_functions)
    asked: list[dict[str, Any]] = [
        SCALARS._asdict(),
        {"kind": "member", "name": "reorderable_logging_functions", "value": "builtins.print"},
        {"kind": "member", "name": "reorderable_logging_functions", "value": "logging.Logger.info"},
        {"kind": "argument", "name": "dynamic", "value": True},
    ]
    with in_force(asked):
        assert config.capture_scalar_outputs is True
        assert len(config.reorderable_logging_functions) == len(before[1]) + 2
        assert print in config.reorderable_logging_functions
    assert (config.capture_scalar_outputs, set(config.reorderable_logging_functions)) == before


@pytest.mark.parametrize("kind", ["config", "member", "argument"])
def test_a_setting_that_this_torch_lacks_is_named(kind: str) -> None:
    missing = {"kind": kind, "name": "capture_everything", "value": "builtins.print"}
    with pytest.raises(MissingSettingError, match=r"torch .* has no setting capture_everything"), in_force([missing]):
        pass


# --- silence ------------------------------------------------------------------------------------------------------

READS = """import torch
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        return x * x.sum().item()
"""
SELECTS = READS.replace("(self, x)", "(self, x: torch.Tensor)").replace("x * x.sum().item()", "x[x > 1].relu()")
DECIDES = READS.replace("        return", "        if x.sum() > 1:\n            x = x + 1\n        return")
SET = "import torch\n\ntorch._dynamo.config.capture_scalar_outputs = {value}\n"


def codes(text: str, *others: str, settings: tuple[TorchSetting, ...] = ()) -> set[str]:
    files = {"net.py": text, **{f"other{number}.py": other for number, other in enumerate(others)}}
    project = Project([summarise(ast.parse(source), path) for path, source in files.items()])
    found = patch(text, "net.py", load_rules(), Settings(torch_settings=settings), project).found
    return {item.code for item in found}


def test_a_rule_is_silent_where_a_setting_takes_in_what_it_finds() -> None:
    assert "FC201" in codes(READS)
    assert "FC201" not in codes(READS, settings=(SCALARS,))
    assert "FC201" in codes(READS, settings=(SHAPES,))
    assert "FC402" in codes(SELECTS)
    assert "FC402" not in codes(SELECTS, settings=(SHAPES,))


def test_what_raises_for_some_numbers_is_told_as_a_check_that_can_be_in_the_graph() -> None:
    text = READS.replace(
        "        return x * x.sum().item()",
        "        n = x.max().item()\n        m = x.min().item()\n        if n > 5 or m < 0:\n"
        "            raise ValueError\n        y = x * n\n        return y + m",
    )
    assert codes(text, settings=(SCALARS, SHAPES)) == {"FC711"}
    assert "FC711" not in codes(text, settings=(SHAPES,))
    assert {"FC201", "FC711"} & codes(text) == {"FC201"}


def test_what_no_setting_takes_in_is_told_all_the_same() -> None:
    assert {"FC101", "FC102"} & codes(DECIDES, settings=(SCALARS, SHAPES))


def test_a_project_sets_it_where_a_module_runs() -> None:
    on, off, imports = SET.format(value=True), SET.format(value=False), "import net\n"
    assert "FC201" not in codes(on + READS)
    assert "FC201" not in codes(READS, imports + on)
    assert "FC201" not in codes(
        READS, imports + "from torch._dynamo import config\n\nconfig.capture_scalar_outputs = True\n"
    )
    assert "FC201" not in codes("import other0\n" + READS, on)
    assert "FC201" not in codes("import other0\n" + READS, "import other1\n", on)
    assert "FC201" in codes(READS, imports + off)
    assert "FC201" in codes(READS, imports + on, imports + off)
    assert "FC201" in codes(READS, imports + SET.format(value="flags.capture"))
    assert "FC201" in codes(READS, imports + "import config\n\nconfig.capture_scalar_outputs = True\n")


def test_what_another_program_sets_is_not_in_force() -> None:
    on = SET.format(value=True)
    assert "FC201" in codes(READS, on)
    assert "FC201" in codes(READS, f"import net\n{on}", "import net\n")


#: For each rule, ways in the table of what gets into a graph that stand for what it finds.
STANDING = {
    "FC201": ("item", "int", "item as size"),
    "FC202": ("tolist", "loop over tolist"),
    "FC204": ("item", "mask index"),
    "FC402": ("mask index", "masked_select"),
    "FC403": ("repeat_interleave",),
    "FC405": ("nonzero", "where"),
}


def test_rules_say_what_removes_them_as_running_has_shown() -> None:
    for rule in load_rules():
        assert bool(rule.removed_by) == (rule.code in STANDING), rule.code
        for version, ways in CAPTURED.items():
            for way in STANDING.get(rule.code, ()):
                assert "both flags" in ways[way], (version, way)
                alone = rule.removed_by if len(rule.removed_by) == 1 else ()
                assert "allow_rnn" not in ways.get("lstm", ()) or set(alone) <= set(ways[way]), (version, way)


# --- the call -----------------------------------------------------------------------------------------------------

MODEL = """import torch
import torch._dynamo
import torch.nn as nn


class Net(nn.Module):
    def forward(self, x):
        n = x.max().item()
        x = x * n + self.seen(x).sum()
        return x[x > 1].relu()

    @torch.compiler.disable
    def seen(self, x):
        {seen}
"""
CASE = """import torch
from net import Net

def build():
    return Net()

def calls():
    return [(torch.arange(4.0 * n).view(n, 4),) for n in (2, 3)]
"""
TRAIN = """import torch

from net import Net


def train():
    model = torch.compile(Net())
    return model(torch.arange(8.0).view(2, 4))
"""


OTHER = """

class Other(torch.nn.Module):
    def forward(self, x):
        return x + 1


def other(x):
    model = Other()
    model = torch.compile(model)
    return model(x)
"""


def proved(folder: Path, seen: str, *options: str, path: str = ".", **files: str) -> tuple[dict[str, Any], str]:
    """The verdict of ``prove``, and what it prints."""
    (folder / "net.py").write_text(MODEL.format(seen=seen))
    (folder / "case.py").write_text(CASE)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    words = ["prove", path, "--case", "case.py", "--backend", "eager", "--quick", "--json", "told.json", "-q"]
    command = [sys.executable, str(ROOT / "fix_compile.py"), *words, *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return told, done.stdout


@pytest.mark.long
def test_settings_that_help_are_written_before_each_call_that_compiles(tmp_path: Path) -> None:
    infer = TRAIN.replace("model = torch.compile(Net())", "model = Net()\n    model.compile()")
    options = "--unsafe", "--ignore", "FC201"  # which would keep the number in the tensor
    told, out = proved(tmp_path, "return x + 1", *options, train=TRAIN, infer=infer + OTHER)
    assert set(told["settings"]) == {"capture_scalar_outputs", "capture_dynamic_output_shape_ops"}
    assert told["graphs"][1] < told["graphs"][0]
    assert re.search(r"compile with: .* \((the settings are )?in the diff\)", out)
    assert {"train.py", "infer.py"} <= set(told["files"])
    for name in ("train.py", "infer.py"):
        text = (tmp_path / name).read_text()
        assert text.count("torch._dynamo.config.capture_scalar_outputs = True\n") == 1
        assert text.index("capture_dynamic_output_shape_ops = True") < text.index("compile(")
    assert (tmp_path / "infer.py").read_text().endswith(OTHER)  # another model, which this case does not run


@pytest.mark.long
def test_one_that_fails_is_dropped_and_where_nothing_compiles_it_says_what_to_write(tmp_path: Path) -> None:
    seen = """if torch._dynamo.config.capture_scalar_outputs:
            raise RuntimeError("not with that")
        return x + 1"""
    told, out = proved(tmp_path, seen, "--unsafe", path="net.py", train=TRAIN, other="import torch\n" + OTHER)
    reasons = {one["code"]: (one["outcome"], one["reason"]) for one in told["dropped"]}
    outcome, reason = reasons["capture_scalar_outputs = True"]
    assert (outcome, "not with that" in reason) == ("failed", True)
    assert told["settings"] == {"capture_dynamic_output_shape_ops": True}
    assert "compile with: torch._dynamo.config.capture_dynamic_output_shape_ops = True" in out
    assert "(in the diff)" not in out
    assert (tmp_path / "train.py").read_text() == TRAIN


@pytest.mark.parametrize("unsafe", [True, False])
def test_what_is_kept_is_written_into_the_call_that_compiles(tmp_path: Path, unsafe: bool) -> None:
    for name, text in (("net.py", MODEL.format(seen="return x")), ("train.py", TRAIN)):
        (tmp_path / name).write_text(text)
    settings = Settings(unsafe=unsafe)
    analysis = Analysis([str(tmp_path)], load_rules(), settings)
    places = Places(analysis.files, str(tmp_path), [])
    mode = TorchSetting("argument", "mode", "reduce-overhead")
    files, left = written(analysis, settings, places, Configuration(settings=(mode, SCALARS)))
    if not unsafe:
        assert (files, left) == ((), (mode, SCALARS))
        return
    assert left == ()
    (train,) = files
    text = train.after.decode()
    assert 'torch.compile(Net(), mode="reduce-overhead")' in text
    assert text.index("config.capture_scalar_outputs = True") < text.index("torch.compile(")
    (tmp_path / "train.py").unlink()
    alone = Analysis([str(tmp_path)], load_rules(), settings)
    assert written(alone, settings, places, Configuration(settings=(mode,))) == ((), (mode,))


# --- which of several models --------------------------------------------------------------------------------------

SEVERAL = """import torch
import torch.nn as nn


class Block(nn.Module):
    def forward(self, x):
        return x.sin()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))

    def forward(self, x):
        return self.blocks[1](self.blocks[0](x))


class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x):
        return self.net(x)


class Other(nn.Module):
    @torch.compile
    def forward(self, x):
        return x.cos()


def net():
    return torch.compile(Net())


def whole():
    model = Whole()
    model.compile()
    return model


def blocks():
    model = Net()
    for block in model.blocks:
        block.compile()
    return model


def unknown(model):
    return torch.compile(model)


def handed(model):
    return torch.compile(model)


def handing():
    return handed(Net()), handed(Whole())
"""


@pytest.mark.parametrize(
    ("models", "written"),
    [
        ((), {"net", "whole", "blocks", "handed", "unknown", "Other"}),
        (("net.Net",), {"net", "whole", "blocks", "handed"}),
        (("package.net.Whole",), {"net", "whole", "blocks", "handed"}),
        (("net.Other",), {"Other"}),
        (("case.Model",), {"unknown"}),
    ],
)
def test_a_setting_is_written_where_the_model_of_the_case_is_compiled(
    models: tuple[str, ...], written: set[str]
) -> None:
    project = Project([summarise(ast.parse(SEVERAL), "net.py")])
    settings = Settings(torch_settings=(SCALARS,), models=models, select=("FC710",), unsafe=True)
    found = patch(SEVERAL, "net.py", load_rules(), settings, project).found
    assert {item.scope.partition(".")[0] for item in found if item.applicability == "unsafe"} == written
    unseen = [item.assumption for item in found if item.applicability != "unsafe"]
    assert len(unseen) == ("unknown" not in written) and all("is not seen" in told for told in unseen)


def test_an_analysis_by_several_processes_finds_the_same(tmp_path: Path) -> None:
    for number in range(90):
        text = "from torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n"
        body = "        if x.sum() > 0:\n            x = x * 2\n" if number % 9 == 0 else ""
        (tmp_path / f"net{number}.py").write_text(f"{text}{body}        return x\n")
    settings = Settings(unsafe=True)
    several, one = (Analysis([str(tmp_path)], load_rules(), settings, jobs=jobs) for jobs in (2, 1))
    assert several.first == one.first
    assert sum(file.changed for file in several.first) == 10
    assert several.again(settings) == one.again(settings)
