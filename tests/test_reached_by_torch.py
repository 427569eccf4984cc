"""Code that Dynamo looks into although something else runs it: TorchScript, and the gradients of a function."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from fix_compile import main

SCRIPTED = """\
import torch


{decorator}
def shrink(x: torch.Tensor, k: torch.Tensor):
    if k.sum() > 0:
        x = x * 2
    else:
        x = x * 3
    return x


class Model(torch.nn.Module):
    def forward(self, x, k):
        return shrink(x, k)
"""
GRADIENT = """\
import torch


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, given):
        (x,) = ctx.saved_tensors
        kept = given.clone()
        kept[x < 0] = kept[x < 0] * 0.5
        return kept


class Model(torch.nn.Module):
    def forward(self, x):
        return {called}
"""


def told(folder: Path, source: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    (folder / "model.py").write_text(textwrap.dedent(source))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["fix-compile", *words, str(folder)])
        main()
    return capsys.readouterr().out


@pytest.mark.parametrize("decorator", ["@torch.jit.script", "@torch.jit.script_if_tracing", "@torch.no_grad()"])
def test_a_scripted_function_is_told_of_and_left_alone(
    decorator: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = SCRIPTED.format(decorator=decorator)
    assert "model.py:6:5: FC101" in told(tmp_path, source, capsys, "check")
    told(tmp_path, source, capsys, "fix", "--unsafe", "--no-backup")
    assert ((tmp_path / "model.py").read_text() == source) is ("jit" in decorator)


def test_a_function_left_out_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "FC101" not in told(tmp_path, SCRIPTED.format(decorator="@torch.compiler.disable"), capsys, "check")


def test_gradients_of_a_function_that_is_applied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "model.py:14:23: FC402" in told(tmp_path, GRADIENT.format(called="Clip.apply(x)"), capsys, "check")
    assert "FC40" not in told(tmp_path, GRADIENT.format(called="x * 2"), capsys, "check")
