"""A ``print`` that writes on one process of many is one; what keeps what it is told is not."""

from __future__ import annotations

import ast

import pytest

from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.finding import find
from patcher.settings import Settings
from rules import load_rules

HEAD = """\
import builtins as __builtin__
import datetime
import torch.distributed as dist

told = []

def get_rank():
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0

def is_main_process():
    return get_rank() == 0

def count():
    told.append(1)
    return True

def only_main(is_master):
    builtin_print = __builtin__.print

"""
MODEL = """\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        print("shape", y.shape)
        return y + 1
"""
HANDED_ON = (
    "    if is_master or force:\n        builtin_print(*args, **kwargs)",
    "    if is_main_process() or force:\n        builtin_print('[{}]'.format(datetime.datetime.now().time()), end='')\n"
    "        builtin_print(*args, **kwargs)",
)
KEPT = (
    "    told.append(args)\n    builtin_print(*args, **kwargs)",
    "    global told\n    told = args",
    "    if count():\n        builtin_print(*args)",
    "    for a in args:\n        a.add_(1)\n    builtin_print(*args)",
    "    writer(*args)",
    "    builtin_print(*args, **kwargs)\n    builtin_print(*args, file=told)",
    "    builtin_print = args[0]\n    builtin_print(*args)",
)


def _is_fixed(body: str, put: str = "__builtin__.print = print") -> bool:
    text = "\n".join(f"    {line}" for line in body.splitlines())
    head = f"{HEAD}    def print(*args, **kwargs):\n        force = kwargs.pop('force', False)\n"
    replaced = f"{head}{text}\n\n    {put}\n"
    files = {"net.py": MODEL, "misc.py": replaced}
    project = Project([summarise(ast.parse(t), name) for name, t in files.items()])
    rules = [r for r in load_rules() if r.code == "FC602"]
    (finding,) = find(MODEL, "net.py", rules, Settings(), project).found
    return finding.applicability == "safe"


@pytest.mark.parametrize("body", HANDED_ON)
def test_writing_on_one_process(body: str) -> None:
    assert _is_fixed(body)


@pytest.mark.parametrize("body", KEPT)
def test_keeping_what_is_told(body: str) -> None:
    assert not _is_fixed(body)


def test_something_else_is_put_there() -> None:
    assert not _is_fixed(HANDED_ON[0], "__builtin__.print = told.append")
    assert not _is_fixed(HANDED_ON[0], "unknown.print = print")


FORMATTER = """\
import logging

class Coloured(logging.{base}):
    def {method}(self, record):
        record.name = record.name.upper()
        {kept}
        return record.name
"""
WARNING = MODEL.replace("import torch\n", "import logging\nimport torch\n").replace("print(", "logging.info(")


@pytest.mark.parametrize(
    ("model", "base", "method", "kept", "fixed"),
    [
        (WARNING, "Formatter", "format", "pass", True),
        (WARNING, "Formatter", "format", "self.last = record", False),
        (WARNING, "Formatter", "format", "self.told.append(record)", False),
        (WARNING, "Handler", "emit", "self.last = record", False),
        (WARNING, "Handler", "emit", "pass", False),
        (MODEL, "Handler", "emit", "self.last = record", True),
    ],
)
def test_what_loggers_hand_their_messages_to(model: str, base: str, method: str, kept: str, fixed: bool) -> None:
    files = {"net.py": model, "log.py": FORMATTER.format(base=base, method=method, kept=kept)}
    project = Project([summarise(ast.parse(t), name) for name, t in files.items()])
    rules = [r for r in load_rules() if r.code == "FC602"]
    (finding,) = find(model.replace('", y', ' %s", y'), "net.py", rules, Settings(), project).found
    assert (finding.applicability == "safe") == fixed
