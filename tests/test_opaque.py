"""Code that Dynamo does not look into is no compiled code, and what only compiled code runs stays as it is."""

from __future__ import annotations

import pytest

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules

SOURCE = """\
import torch
from torch import nn
from torch.compiler import assume_constant_result
from transformers.utils import is_torchdynamo_compiling


{above}def told(x: torch.Tensor) -> torch.Tensor:
    print("told", x.shape)
    return x + 1


{below}


class Net(nn.Module):
    def forward(self, x):
        return {call}
"""


@pytest.mark.parametrize(
    ("above", "below", "fixed"),
    [
        ("", "", True),
        ("@torch.no_grad()\n", "", True),
        ("@torch.compiler.disable\n", "", False),
        ("@torch.compiler.allow_in_graph\n", "", False),
        ("@torch._dynamo.nonstrict_trace\n", "", False),
        ("@assume_constant_result\n", "", False),
        ('@torch.library.custom_op("net::told", mutates_args=())\n', "", False),
        ("", "told = torch.compiler.disable(told)", False),
        ("", "told = assume_constant_result(told)", False),
        ("", "told = torch.compiler.disable(recursive=True)(told)", False),
        ("", "told = torch.no_grad()(told)", True),
        ("", "other = torch.compiler.disable(told)", True),
    ],
)
def test_what_dynamo_does_not_look_into(above: str, below: str, fixed: bool) -> None:
    text = SOURCE.format(above=above, below=below, call="told(x)")
    result = patch(text, "net.py", load_rules(), Settings())
    assert {f.code for f in result.fixed} == ({"FC602"} if fixed else set())


def test_a_message_for_compiled_code_alone() -> None:
    call = 'x if not is_torchdynamo_compiling() else print("compiled", x.shape)'
    text = SOURCE.format(above="", below="", call=call)
    assert patch(text, "net.py", load_rules(), Settings()).text == text
    asked = call.replace("is_torchdynamo_compiling()", "x.is_cuda").replace(
        ' else print("compiled", x.shape)', " else told(x)"
    )
    text = SOURCE.format(above="", below="", call=asked)
    assert patch(text, "net.py", load_rules(), Settings()).text != text
