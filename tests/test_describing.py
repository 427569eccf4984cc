"""What a message asks of an object of the project: all of it may be a method that changes something."""

from __future__ import annotations

import pytest

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules

SOURCE = """\
import torch
from torch import nn


class Meter:
    def __init__(self):
        self.asked = 0

    def {method}(self, *others):
        {does}
        return 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.meter = Meter()

    def forward(self, x):
        print("seen", {asked})
        return x * 2
"""


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("__neg__", "-self.meter"),
        ("__invert__", "~self.meter"),
        ("__str__", "self.meter"),
        ("__repr__", "[self.meter]"),
        ("__repr__", "{'meter': (self.meter, 1)}"),
        ("__lt__", "sorted([self.meter, self.meter])"),
        ("__radd__", "sum([self.meter])"),
        ("__hash__", "{self.meter}"),
        ("__hash__", "{self.meter: 1}"),
        ("__hash__", "{1: 2}.get(self.meter)"),
        ("__hash__", "{1: 2}[self.meter]"),
        ("__index__", "[1, 2][self.meter]"),
        ("__index__", "hex(self.meter)"),
        ("__contains__", "1 in self.meter"),
        ("__iter__", "1 in self.meter"),
        ("__getitem__", "1 not in self.meter"),
    ],
)
def test_what_may_change_when_it_is_asked(method: str, asked: str) -> None:
    for does, fixed in (("self.asked += 1", set[str]()), ("pass", {"FC602"})):
        text = SOURCE.format(method=method, asked=asked, does=does)
        result = patch(text, "net.py", load_rules(), Settings())
        assert {f.code for f in result.fixed} == fixed
