"""FC707 where another file wraps: accelerate that is told to compile, whoever hands it over."""

from __future__ import annotations

import ast

import pytest

from patcher.edit.engine import patch
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules

SETUP = """from accelerate import Accelerator


def prepared(args):
    return Accelerator(mixed_precision="no", dynamo_backend=args.dynamo_backend)
"""
PLAIN = SETUP.replace(", dynamo_backend=args.dynamo_backend", "")
HELPERS = """def converted(state):
    return state
"""
ABOVE = """import copy
import torch
from accelerate import Accelerator
from safetensors.torch import save_file
from torch.optim.swa_utils import AveragedModel
import helpers
import setup


"""


def fixed(body: str, setup: str = SETUP) -> PatchResult:
    files = {"setup": setup, "helpers": HELPERS, "example": ABOVE + body}
    project = Project([summarise(ast.parse(text), f"{name}.py") for name, text in files.items()])
    (rule,) = (r for r in load_rules() if r.code == "FC707")
    result = patch(ABOVE + body, "example.py", (rule,), Settings(unsafe=True), project)
    assert result.bugs == ()
    return result


def found(body: str, setup: str = SETUP) -> list[str]:
    return [f.message for f in fixed(body, setup).found]


TRAINED = """def train(args, model, path):
    accelerator = setup.prepared(args)
    model = accelerator.prepare(model)
    {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "save_file(accelerator.unwrap_model(model).state_dict(), path)",
        "torch.save({'model': accelerator.get_state_dict(model)}, path)",
        "torch.save(copy.deepcopy(model).state_dict(), path)",
        "torch.save(AveragedModel(model).state_dict(), path)",
        "torch.save(AveragedModel(model).module.state_dict(), path)",
    ],
)
def test_accelerate_that_is_told_to_compile_wraps_what_it_prepares(line: str) -> None:
    (message,) = found(TRAINED.format(line))
    assert "`Accelerator(dynamo_backend=...)` (setup.py, line 5) wraps it" in message
    assert "maybe_uncompile_state_dict(" in fixed(TRAINED.format(line)).text
    assert found(TRAINED.format(line), PLAIN) == []


@pytest.mark.parametrize(
    "line",
    [
        "save_file(accelerator.unwrap_model(model, keep_torch_compile=False).state_dict(), path)",
        "accelerator.save_state(path)",
        "model.save_pretrained(path)",
        "torch.save(args, path)",
    ],
)
def test_what_accelerate_unwraps_is_left_alone(line: str) -> None:
    assert found(TRAINED.format(line)) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("dynamo_backend='inductor'", True),
        ("dynamo_plugin=plugin", True),
        ("dynamo_backend='NO'", False),
        ("dynamo_backend=DynamoBackend.NO", False),
        ("dynamo_backend=None", False),
        ("mixed_precision='bf16'", False),
    ],
)
def test_an_accelerator_of_the_same_file(given: str, told: bool) -> None:
    body = f"""def train(model, path, plugin, DynamoBackend):
    accelerator = Accelerator({given})
    model = accelerator.prepare(model)
    torch.save(accelerator.unwrap_model(model).state_dict(), path)
"""
    assert len(found(body)) == told  # that of the other file is another one


@pytest.mark.parametrize(("given", "told"), [("dynamo_backend=args.dynamo_backend", True), ("project_dir=None", False)])
def test_an_accelerator_that_a_function_of_the_file_makes(given: str, told: bool) -> None:
    body = f"""def made(args):
    accelerator = Accelerator({given})
    print(accelerator.state)
    return accelerator


def train(args, model, path):
    accelerator = made(args)
    model = accelerator.prepare(model)
    torch.save(accelerator.unwrap_model(model).state_dict(), path)
"""
    assert len(found(body)) == told


SAVER = """def save_model(net, path, dtype=None):
    state_dict = {}

    def add(prefix, sd):
        for k, v in sd.items():
            state_dict[prefix + k] = v.to(dtype)

    add("model.", net.state_dict())
    save_file(state_dict, path)
"""


def test_a_saver_that_is_handed_the_model_by_other_files() -> None:
    result = fixed(SAVER)
    assert (
        "where `Accelerator(dynamo_backend=...)` (setup.py, line 5) wraps what is handed over"
        in result.found[0].message
    )
    assert 'add("model.", maybe_uncompile_state_dict(net.state_dict()))' in result.text
    assert found(SAVER, PLAIN) == []
    inner = SAVER + "\n\ndef at_end(net, path):\n    def saver():\n        save_model(net, path)\n\n    return saver\n"
    assert len(found(inner)) == 1


def test_what_a_saver_converts_gets_the_names_of_the_model() -> None:
    body = "def save_model(net, path):\n    save_file(helpers.converted(net.state_dict()), path)\n"
    assert "helpers.converted(maybe_uncompile_state_dict(net.state_dict()))" in fixed(body).text


@pytest.mark.parametrize(
    "body",
    [
        "def save_model(path):\n    net = torch.nn.Linear(2, 2)\n    save_file(net.state_dict(), path)\n",
        "class Net(torch.nn.Module):\n    def save(self, path):\n        save_file(self.state_dict(), path)\n",
        "def load(net, path):\n    net.load_state_dict(torch.load(path))\n",  # most are loaded before they are prepared
        "def save(net, path):\n    net.save_pretrained(path)\n",
        SAVER.replace("in sd.items()", "in strip(sd, '_orig_mod.').items()"),
    ],
)
def test_what_is_no_model_from_elsewhere(body: str) -> None:
    assert found(body) == []
