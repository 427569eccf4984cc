"""Fixes that gain nothing because another break stays; what a fix leaves out of compiled code does not stay."""

from __future__ import annotations

import pytest

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules

SOURCE = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Net(nn.Module):
    def forward(self, x, verbose: bool = True):
        y = x * 2
{body}
        return y
"""
FIXED = {
    "a read in its own arguments": ('print("mean", x.mean().item())',),
    "two messages that read": ('print("mean", x.mean().item())', 'logger.warning(f"max {x.max().item()}")'),
    "the read of a message further down": (
        'print("shape", x.shape)',
        "y = y + 1",
        'logger.warning(f"max {x.max().item()}")',
    ),
    "under tests of their own": (
        "if verbose:",
        '    print("sum %d" % x.sum())',
        "y = y + 1",
        "if not verbose:",
        '    print("max", int(x.max()))',
    ),
}
LEFT = {
    "a read that stays": ('print("mean", x.mean().item())', "y = y[: int(x.max())]"),
    "a read that stays, of two messages": (
        'print("shape", x.shape)',
        "y = y[: int(x.max())]",
        'logger.warning(f"max {x.max().item()}")',
    ),
}


def patched(body: tuple[str, ...]) -> str:
    source = SOURCE.format(body="\n".join(f"        {line}" for line in body))
    result = patch(source, "model.py", load_rules(), Settings())
    assert not result.bugs
    return result.text


@pytest.mark.parametrize("body", FIXED.values(), ids=FIXED)
def test_the_messages_are_left_out(body: tuple[str, ...]) -> None:
    messages = sum("print" in line or "logger" in line for line in body)
    assert 1 <= patched(body).count("is_compiling") <= messages


@pytest.mark.parametrize("body", LEFT.values(), ids=LEFT)
def test_the_messages_stay(body: tuple[str, ...]) -> None:
    assert "is_compiling" not in patched(body)
