"""FC706 on models whose cost an example cannot show: numbers of blocks, wrappers of a model, several files."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from patcher.edit.engine import patch
from patcher.facts.project.block_lists import BlockList
from patcher.facts.project.index import Project
from patcher.facts.project.summarising import summarise
from patcher.settings import Settings, TorchSetting
from rules import load_rules

SETTINGS = Settings(select=("FC706",), unsafe=True)

MODEL = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.lin = nn.Linear(2, 2)
        self.number = number

    def forward(self, x):
        return self.lin(x) + self.number


class Stack(nn.Module):
    def __init__(self, depth=12):
        super().__init__()
        self.blocks = nn.ModuleList([Block(i) for i in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


"""

COUNTED = """
from torch._dynamo.utils import counters

graphs = []
def backend(graph, inputs):
    graphs.append(graph)
    return graph.forward

with torch.no_grad():
    model = train(backend)
    out = model(torch.ones(1, 2))
print(len(graphs), not any("_orig_mod" in key for key in model.state_dict()))
"""


def written(text: str, settings: Settings = SETTINGS, **files: str) -> str:
    project = Project([summarise(ast.parse(t), f"{n}.py") for n, t in (("train", text), *files.items())])
    return patch(text, "train.py", load_rules(), settings, project).text


def run(text: str) -> str:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.strip()


def test_the_limit_is_raised_where_each_block_has_a_number() -> None:
    text = MODEL + "def train(backend):\n    model = Stack()\n    model.compile(backend=backend)\n    return model\n"
    after = written(text)
    limit = "torch._dynamo.config.recompile_limit"
    assert f"    {limit} = max({limit}, len(model.blocks))\n    for block in model.blocks:\n" in after
    without = "".join(line for line in after.splitlines(keepends=True) if limit not in line)
    assert run(without + COUNTED) == "8 True"  # and the other four run eagerly
    assert run(after + COUNTED) == "12 True"
    older = written(text, Settings(select=("FC706",), unsafe=True, target_torch=(2, 6)))
    assert "cache_size_limit = max(torch._dynamo.config.cache_size_limit, len(model.blocks))" in older


@pytest.mark.parametrize(
    ("model", "call"),
    [
        ("Stack(depth=8)", "model.compile(backend=backend)"),
        ("Stack()", "model.compile(backend=backend, recompile_limit=64)"),
    ],
)
def test_no_limit_where_none_is_needed(model: str, call: str) -> None:
    source = MODEL.replace("range(depth)", "range(8)") if "8" in model else MODEL
    after = written(f"{source}def train(backend):\n    model = {model}\n    {call}\n    return model\n")
    assert "for block in model.blocks:" in after
    assert "torch._dynamo.config" not in after


DDP = """import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(backend):
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    model = Stack(2)
{lines}
    return model
"""
BEFORE = "    model = torch.compile(model, backend=backend)\n    model = DistributedDataParallel(model)"
AFTER = "    model = DistributedDataParallel(model)\n    model = torch.compile(model, backend=backend)"
LOOP = "    for block in {}.blocks:\n        block.compile(backend=backend)"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (BEFORE, LOOP.format("model") + "\n    model = DistributedDataParallel(model)"),
        (AFTER, "    model = DistributedDataParallel(model)\n" + LOOP.format("model.module")),
    ],
)
def test_before_and_behind_data_parallel(lines: str, expected: str) -> None:
    model = MODEL.replace("range(depth)", "range(2)")
    text = DDP.format(lines=lines).replace("def train", f"{model}def train", 1)
    after = written(text)
    assert after == text.replace(lines, expected)
    assert run(after + COUNTED) == "2 True"


def test_the_model_of_another_file_that_accelerate_has_prepared() -> None:
    text = """import torch
from net import Stack

model = Stack()
model, optimizer = accelerator.prepare(model, optimizer)
model = torch.compile(model, mode="default")
"""
    plain = MODEL.replace("Block(i) for i", "Block(2) for _")
    after = written(text, net=plain)
    loop = 'for block in accelerator.unwrap_model(model).blocks:\n    block.compile(mode="default")\n'
    assert after == text.replace('model = torch.compile(model, mode="default")\n', loop)


LISTS = """from torch import nn
from parts import Block, Other


class Net(nn.Module):
    def __init__(self, config, kind):
        super().__init__()
        made = []
        for i in range(config.depth):
            made.append(Block(config, i))
        self.grown = nn.ModuleList(made)
        self.named = nn.ModuleDict({"h": nn.ModuleList([Block(config) for _ in range(config.more)])})
        self.mixed = nn.ModuleList([Block(config), Other(config)])
        self.unknown = nn.ModuleList([kind() for _ in range(2)])
        self.shared = nn.ModuleList([Block(config)] * 2)
        self.either = nn.ModuleList([Block(config) if i else Block(None) for i in range(2)])

    def forward(self, x):
        for i, block in enumerate(self.grown):
            x = block(x)
        for block in self.named.h[1:]:
            x = checkpoint(block, x)
        self.mixed[0] = self.mixed[1]
        return self.either[0].width, [block.forward(x) for block in self.unknown]
"""


def test_the_lists_of_a_class() -> None:
    (net,) = summarise(ast.parse(LISTS), "net.py").classes
    assert {one.path: one for one in net.lists} == {
        "grown": BlockList("grown", "parts.Block", "config.depth", called=True, numbered=True),
        "named.h": BlockList("named.h", "parts.Block", "config.more", called=True),
        "mixed": BlockList("mixed", "", ""),
        "unknown": BlockList("unknown", "", ""),
        "shared": BlockList("shared", "", ""),
        "either": BlockList("either", "parts.Block", "2", numbered=True),
    }


def test_a_run_that_has_decided_is_not_asked_again() -> None:
    text = MODEL + "def train(backend):\n    model = Stack()\n    model.compile(backend=backend)\n    return model\n"
    decided = Settings(
        select=("FC706",), unsafe=True, torch_settings=(TorchSetting("blocks", "blocks", "train.Stack"),)
    )
    assert written(text, decided) == text
