"""FC707 on code with libraries that are not installed here: what it writes around which state, and what it leaves."""

from __future__ import annotations

import ast

import pytest

from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules

ABOVE = """import torch
import torch.nn as nn
from accelerate import Accelerator
from peft import get_peft_model_state_dict
from safetensors.torch import save_file, save_model
from torch.nn.parallel import DistributedDataParallel as DDP


def main(accelerator: Accelerator, model, path, flag):
"""
WRAPPED = "    fast = torch.compile(model)\n"


def fixed(body: str, *codes: str) -> PatchResult:
    rules = tuple(r for r in load_rules() if r.code in (codes or ("FC707",)))
    result = patch(ABOVE + body, "example.py", rules, Settings(unsafe=True))
    assert result.bugs == ()
    ast.parse(result.text)
    return result


def last_line(body: str) -> str:
    return fixed(body).text.splitlines()[-1].strip()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("save_file(fast.state_dict(), path)", "save_file(maybe_uncompile_state_dict(fast.state_dict()), path)"),
        (
            "accelerator.save(fast.state_dict(), path)",
            "accelerator.save(maybe_uncompile_state_dict(fast.state_dict()), path)",
        ),
        (
            "model.save_pretrained(path, state_dict=accelerator.get_state_dict(fast))",
            "model.save_pretrained(path, state_dict=maybe_uncompile_state_dict(accelerator.get_state_dict(fast)))",
        ),
        (
            "save_file(get_peft_model_state_dict(fast), path)",
            "save_file(maybe_uncompile_state_dict(get_peft_model_state_dict(fast)), path)",
        ),
        (
            "torch.save(accelerator.unwrap_model(accelerator.prepare(fast)).state_dict(), path)",
            "torch.save("
            "maybe_uncompile_state_dict(accelerator.unwrap_model(accelerator.prepare(fast)).state_dict()), path)",
        ),
        (
            "torch.save(DDP(fast).state_dict(), path)",
            "torch.save(maybe_uncompile_state_dict(DDP(fast).state_dict()), path)",
        ),
        (
            "torch.save(DDP(fast).module.state_dict(), path)",
            "torch.save(maybe_uncompile_state_dict(DDP(fast).module.state_dict()), path)",
        ),
        (
            "accelerator.unwrap_model(fast).load_state_dict(torch.load(path))",
            "accelerator.unwrap_model(fast).load_state_dict("
            "match_state_dict(torch.load(path), accelerator.unwrap_model(fast)))",
        ),
    ],
)
def test_what_is_written_around_a_state(before: str, after: str) -> None:
    text = ast.unparse(ast.parse(fixed(f"{WRAPPED}    {before}\n").text))
    assert ast.unparse(ast.parse(after)) in text
    assert text.count("def maybe_uncompile_state_dict") == 1


@pytest.mark.parametrize(
    "line",
    [
        "save_file(accelerator.unwrap_model(fast, keep_torch_compile=False).state_dict(), path)",
        "save_file(model.state_dict(), path)",
        "save_file(getattr(fast, '_orig_mod', fast).state_dict(), path)",
        "save_file({k.replace('_orig_mod.', ''): v for k, v in fast.state_dict().items()}, path)",
        "fast.save_pretrained(path)",  # that of the model below the wrapper, which knows its own names
        "save_file(maybe_uncompile_state_dict(fast.state_dict()), path)",
    ],
)
def test_what_has_no_such_names_is_left_alone(line: str) -> None:
    assert fixed(f"{WRAPPED}    {line}\n").found == ()


def test_a_library_that_is_given_the_model_is_named() -> None:
    (found,) = fixed(f"{WRAPPED}    save_model(fast, path)\n").remaining
    assert "`fast` are saved with `_orig_mod`" in found.message and "Module.compile" in found.assumption
    blocks = (
        "    model.blocks = nn.ModuleList(torch.compile(b) for b in model.blocks)\n    model.save_pretrained(path)\n"
    )
    (found,) = fixed(blocks).remaining
    assert "wraps parts of it (line 10)" in found.message


def test_a_load_that_would_load_nothing_says_so() -> None:
    told = fixed(f"{WRAPPED}    fast.load_state_dict(torch.load(path), strict=False)\n").found
    assert [("strict=False" in f.message, "nobody is told" in f.message) for f in told] == [(True, True)]


def test_a_place_that_is_silenced_stays() -> None:
    silenced = "    torch.save(fast.state_dict(), path)  # fix-compile: ignore[FC707]\n"
    body = f"{WRAPPED}{silenced}    save_file(fast.state_dict(), path)\n"
    text = fixed(body).text
    assert "torch.save(fast.state_dict(), path)" in text
    assert "save_file(maybe_uncompile_state_dict(fast.state_dict()), path)" in text


def test_the_function_of_a_project_is_used() -> None:
    imported = "from .compile_utils import maybe_uncompile_state_dict\n"
    body = f"{WRAPPED}    torch.save(fast.state_dict(), path)\n"
    (rule,) = (r for r in load_rules() if r.code == "FC707")
    text = patch(imported + ABOVE + body, "example.py", (rule,), Settings(unsafe=True)).text
    assert text == imported + ABOVE + body.replace("fast.state_dict()", "maybe_uncompile_state_dict(fast.state_dict())")


def test_compiling_in_place_comes_first() -> None:
    net = "    net = Net()\n    net = torch.compile(net)\n    net(path)\n    torch.save(net.state_dict(), path)\n"
    classes = "\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
    both = fixed(net + classes, "FC703", "FC707")
    assert "net.compile()" in both.text and "uncompile_state_dict" not in both.text
    assert "maybe_uncompile_state_dict(net.state_dict())" in fixed(net + classes).text
