"""Every spelling in which NumPy stands in a forward: what breaks the graph is told, and nothing else is.

Each row is executed under Dynamo with its default settings, on a CPU: what breaks is what this torch does, and the
rules have to say the same of the same lines. The table of what NumPy's values are in a graph is held to it as well.
"""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import pytest
import torch

from patcher.facts.tables.numpy_api import ENDED_AT, Traced
from patcher.finding import find
from patcher.harness.listener import Listener, listening
from patcher.settings import Settings
from rules import load_rules

HEAD = """\
import math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.size = (2, 3, 1)
        self.dim = 4
        self.real = 1.5
        self.np_int = np.prod((2, 1))
        self.np_float64 = np.sqrt(4)
        self.np_float32 = np.float32(1.5)
        self.np_bool = np.bool_(True)
        self.array = np.array([1, 2])
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])

    def forward(self, x: torch.Tensor):
"""
#: Statements, one row behind the other.
ROWS = """\
y = torch.tensor_split(x, list(np.cumsum([n * 1 for n in self.size if n])[:-1]), dim=-1)[0]
---
n = float(np.prod(self.size))
y = x * n
---
n = int(np.prod(self.size))
y = x * n
---
n = np.prod(self.size)
y = x * n
---
n = np.prod(self.size)
y = x / n
---
n = np.prod(self.size)
y = x.reshape(n, -1)
---
n = np.prod(x.shape)
y = x.reshape(n)
---
n = int(np.prod(x.shape[1:]))
y = x.view(-1, n)
---
n = np.prod(self.size).item()
y = x * n
---
n = np.sqrt(self.dim)
y = x / n
---
n = np.sqrt(x.shape[-1])
y = x / n
---
n = np.sqrt(x.size(-1))
y = x * n
---
n = float(np.sqrt(x.size(-1)))
y = x * n
---
n = float(np.sqrt(self.dim))
y = x * n
---
y = x * self.np_float64
---
y = x.to(torch.int64) * self.np_float64
---
y = x * (self.np_float64 + 1)
---
y = x * (self.np_int * self.dim)
---
y = x * self.np_float64.item()
---
y = x[:, : self.np_int]
---
y = x[:, self.np_int - 2 :]
---
y = x[self.np_int - 2]
---
y = x.new_zeros(self.np_int)
---
y = torch.zeros(self.np_int * 2, 3) + x.sum()
---
y = F.pad(x, (0, self.np_int))
---
y = F.pad(x, (0, self.np_int - 1))
---
y = x.unsqueeze(self.np_int - 2)
---
y = torch.arange(self.np_int)
---
y = torch.full_like(x, self.np_float64)
---
y = x ** self.np_float64
---
y = torch.tensor(self.np_float64) * x
---
y = torch.tensor(self.array) * 2
---
y = x * 1
for i in range(self.np_int):
    y = y + i
---
y = x * 1
if self.np_int > 1:
    y = y + 1
---
y = x * 1
if self.np_float64 > 1:
    y = y + 1
---
y = x * 1
if x.shape[1] > self.np_int:
    y = y + 1
---
y = x * 1
if self.array.any():
    y = y + 1
---
y = x * 1
if np.all(np.array(x.shape) > 1):
    y = y + 1
---
y = x * 1
if self.array is not None:
    y = y + 1
---
y = x * 1
if len(self.array) > 1:
    y = y + 1
---
y = x * 1
if self.array.sum() > 1:
    y = y + 1
---
y = x * 1
if np.isscalar(self.dim):
    y = y + 1
---
y = x * 1
if isinstance(self.np_int, np.integer):
    y = y + 1
---
y = x * 1
if np.isclose(self.dim, 4.0):
    y = y + 1
---
y = x * 1
if np.isnan(self.real):
    y = y + 1
---
y = x * 1
if self.dim == np.floor(self.dim):
    y = y + 1
---
n = int(np.ceil(x.shape[1] / 2))
y = x[:, :n]
---
n = int(np.log2(self.dim))
y = x[:, :n]
---
n = math.floor(np.sqrt(self.dim))
y = x[:, :n]
---
n = int(np.maximum(self.dim, 3))
y = x * n
---
n = np.maximum(self.dim, 3)
y = x * n
---
n = int(np.max(self.size))
y = x * n
---
n = max(self.array)
y = x * n
---
n = np.max(self.size)
y = x[:, :n]
---
n = np.minimum(x.shape[0], 3)
y = x[:n]
---
n = np.clip(self.dim, 1, 3)
y = x[:n]
---
n = float(np.mean(self.size))
y = x * n
---
n = np.cumsum(self.size)
y = x[:, : n[0]]
---
n = np.cumsum([0] + list(self.size))
y = [x[:, a:b] for a, b in zip(n[:-1], n[1:])][0]
---
perm = np.arange(x.dim())
y = x.permute(*perm)
---
perm = np.arange(x.dim())
perm[0], perm[1] = perm[1], perm[0]
y = x.permute(*perm)
---
perm = np.arange(x.dim())
y = x.permute(*perm.tolist())
---
perm = np.arange(x.dim())
y = x.permute(tuple(perm))
---
perm = list(np.arange(x.dim()))
y = x.permute(perm)
---
y = torch.tensor_split(x, tuple(self.array))[0]
---
y = x * torch.from_numpy(np.ones(x.shape, dtype=np.float32))
---
y = x * torch.tensor(np.hanning(x.shape[-1]))
---
y = x * self.array[0]
---
y = x[:, : self.array[0]]
---
y = x[:, self.array - 1]
---
y = x * 1
for i in self.array:
    y = y + i
---
y = x * 1
for i in np.arange(self.dim):
    y = y + x[:, i % 2 : i % 2 + 1]
---
y = x * 1
for i in np.arange(2):
    y = y + x[:, i : i + 1]
---
y = x * 1
for i in np.arange(2):
    y = self.layers[i](y)
---
y = self.layers[self.np_int - 2](x)
---
y = x * self.size[self.np_int - 2]
---
y = x * np.random.rand()
---
n = np.random.randint(0, 2)
y = x[:, n:]
---
y = x + torch.from_numpy(np.random.randn(*x.shape))
---
y = x[:, np.random.permutation(3)]
---
n = np.array(x.shape)
y = x / n[0]
---
n = np.array(x.shape) // 2
y = x[: n[0]]
---
n = np.array(x.shape) // 2
y = x[: int(n[0])]
---
n = (np.array(x.shape) // 2).tolist()
y = x[: n[0]]
---
n = np.array(x.shape[-2:]) * 2
y = F.interpolate(x[None, None], size=tuple(n))
---
n = np.array(x.shape[-2:]) * 2
y = F.interpolate(x[None, None], size=tuple(int(i) for i in n))
---
y = x * self.array.tolist()[0]
---
y = torch.exp(torch.arange(3) * -(np.log(10000.0) / 3)) * x
---
y = torch.from_numpy(np.sqrt(x.numpy())) * x
---
text = f"{self.np_float64}"
y = x * 1
---
text = str(self.np_float64)
y = x * 1
---
y = x * (self.size[0] if self.np_int in (1, 2) else 3)
---
y = x * {2: 3}[self.np_int]
---
y = x * min(self.np_int, 3)
---
y = x * max(x.shape[0], self.np_int)
---
y = x[: min(x.shape[0], self.np_int)]
---
y = F.dropout(x, self.np_float64 / 10, True)
---
y = torch.linspace(0, 1, self.np_int + 1) * x
---
y = [x] * self.np_int
y = y[0]
---
y = x * np.zeros(self.dim).shape[0]
---
y = x.transpose(self.np_int - 1, 0)
---
y = x * 1
y[:, self.np_int - 2] = 1
---
y = x[:, : np.floor_divide(self.dim, 2)]
---
y = x[:, : self.dim // np.prod(self.size)]
---
y = x[:, : int(self.dim // np.prod(self.size))]
---
y = x[:, np.argmax(self.size)]
---
y = x[:, int(np.argmax(self.size))]
---
y = x[:, np.argsort(self.size)]
---
y = x.permute(*np.argsort(self.size[:2]))
---
y = x.permute(*np.argsort(self.size[:2]).tolist())
---
y = x * float(np.int64(3))
---
y = x.sum() / np.prod(x.shape[1:])
---
y = x * bool(self.np_bool)
---
y = self.layers[0](x) if self.np_float64 > 2 and self.dim > 1 else x
---
assert self.np_int == 2
y = x * 1
---
n = np.prod(x.shape[1:])
y = x * 1
if n > 2:
    y = y + 1
---
n = x.shape[0] * self.np_int
y = x.reshape(-1) * n
---
n = x.shape[0] * self.np_float64
y = x[: int(n)]
"""
#: What ends no graph, all in one.
FINE = """\
y = x * 1
n = np.prod(x.shape)
z = x / n
n = np.prod(list(x.shape))
z = x * n
n = 1 / np.sqrt(self.dim)
z = x * n
z = x * np.log(2)
z = x * np.pi
z = x * np.sqrt(2.0 / np.pi)
z = x * self.np_float64
z = x * self.np_float32
z = x + self.np_int
z = x.half() * np.sqrt(self.dim)
z = x * (self.np_int * self.dim)
z = x * float(self.np_float64)
z = torch.zeros(self.np_int, 3) + x.sum()
z = torch.zeros((self.np_int, 3)) + x.sum()
z = x.reshape(self.np_int, -1)
z = x.view(-1, self.np_int, 1)
z = x.repeat(1, self.np_int)
z = x.expand(self.np_int, -1, -1)
z = torch.full((2,), self.np_float64)
z = x.clamp(self.np_float64)
z = x.clamp(min=self.np_float64, max=9.0)
z = torch.clamp(x, max=self.np_float64)
z = x.masked_fill(x > 3, self.np_float64)
z = torch.from_numpy(self.array) * 2
z = torch.as_tensor(self.array) * 2
z = x * 1
z = x * 1
z = x * 1
z = x * 1
n = int(np.floor(self.dim / 3))
z = x[:, :n]
n = int(np.ceil(self.dim / 3))
z = x[:, :n]
n = int(np.round(self.real))
z = x[:, :n]
n = np.mean(self.size)
z = x * n
z = x * torch.from_numpy(np.ones(3))
z = x * torch.from_numpy(np.ones((1, 3), dtype=np.float32) / 2)
z = x * torch.from_numpy(np.ones((1, 3), dtype=np.float32) / float(self.dim))
z = x * torch.tensor(np.linspace(0, 1, x.shape[-1]))
z = x * torch.tensor(np.arange(x.shape[-1]))
z = x * torch.from_numpy(np.arange(x.shape[-1]).astype(np.float32))
z = x + self.array.sum()
n = np.float64(self.real)
z = x * n
n = np.array(self.size).astype(np.float32)
z = x * n[0]
z = x * np.exp(-self.real)
z = x * np.exp(-self.real * self.dim) + np.log(self.dim)
z = x * np.power(self.dim, 0.5)
z = x * np.abs(self.real)
z = x * np.sum(self.size)
z = x * np.sum([p for p in self.size])
z = x * np.sum(x.shape)
z = x * math.sqrt(self.np_int)
z = x * math.sqrt(self.np_float64)
z = torch.linspace(0, self.np_float64, 3) * x
z = torch.arange(0, self.np_float64, 1.0)
z = x.add(x, alpha=self.np_float64)
z = x.roll(self.np_int)
z = x.narrow(0, 0, self.np_int)
z = x.topk(self.np_int)[0]
z = torch.eye(self.np_int) * x.sum()
z = x * np.finfo(np.float32).eps
z = x + np.finfo(np.float32).min
z = x * np.nan_to_num(self.real)
z = x * np.deg2rad(self.real)
z = x * np.floor_divide(self.dim, 2)
z = x * np.dot(self.size, self.size)
z = x * (np.array(self.size) == np.array(self.size)).all()
z = x * math.prod(self.size)
z = x * torch.as_tensor(np.prod(self.size))
z = x * torch.tensor(np.prod(self.size), dtype=x.dtype)
z = x * torch.tensor([np.prod(self.size)], dtype=x.dtype)
z = torch.log(x + 1) / np.log(2)
z = x - np.log(np.prod(self.size))
z = x - np.log(x.shape[-1] * 2)
z = x * 1
n = x.shape[0] / self.np_int
z = x * n
"""
FIRST = HEAD.count("\n") + 1
RULES = load_rules()
TELLING = frozenset(rule.code for rule in RULES if "graph break" in rule.costs) - {"FC204", "FC207"}


def source(row: str) -> str:
    return f"{HEAD}{textwrap.indent(row, ' ' * 8)}\n        return y\n"


def told(text: str) -> set[int]:
    result = find(text, "example.py", RULES, Settings())
    assert not result.bugs
    return {f.line - FIRST + 1 for f in result.found if f.code in TELLING and f.line >= FIRST}


def broken(path: Path) -> set[int]:
    """The lines of the row at which the graph breaks; some end in an error of PyTorch's."""
    spec = importlib.util.spec_from_file_location("numpy_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x = torch.arange(6.0).view(2, 3) + 1
    module.Net().eval()(x)  # it runs
    torch._dynamo.reset()
    listener = Listener(str)
    with listening(listener, False), torch.no_grad():
        try:
            torch.compile(module.Net().eval(), backend="eager")(x)
        except (RuntimeError, TypeError):
            assert listener.details
    stacks = [details["stack"] for details in listener.details.values() if details.get("stack")]
    places = [stack[-1].rpartition(" in ")[0].rpartition(":") for stack in stacks]
    return {int(line) - FIRST + 1 for file, _, line in places if file == str(path)}


@pytest.mark.slow
@pytest.mark.parametrize("row", [row.strip("\n") for row in [*ROWS.split("---\n"), FINE]])
def test_what_breaks_is_told_and_nothing_else(row: str, tmp_path: Path) -> None:
    path = tmp_path / "numpy_example.py"
    path.write_text(source(row))
    assert told(source(row)) == broken(path)


#: One of each kind, an integer where that may be.
ONE_OF = {
    Traced.FLOAT: "np.sqrt(self.dim)",
    Traced.INT: "np.maximum(self.dim, 3)",
    Traced.KEPT: "self.np_int",
    Traced.MADE: "np.max(self.size)",
    Traced.ARRAY: "self.array",
}
#: Way -> how it is asked.
ASKED = {
    "int of an array": "y = x * int({0})",
    "bool": "y = x * bool({0})",
    "array as end of a slice": "y = x * 1\ny = y[: {0}]",
    "array as size": "y = x.sum() + torch.zeros({0}, 3)",
    "range of an array": "y = x * 1\nfor i in range({0}):\n    y = y + i",
    "tensor as index of a list": "y = x * [1, 2, 3, 4, 5][{0}]",
    "tensor as index of one row": "y = x * torch.arange(9)[{0}].sum()",
    "if of a tensor": "y = x * 1\nif {0} > 1:\n    y = y * 2",
    "while of a tensor that is made": "y = x * 1\nn = 0\nwhile n < {0}:\n    n = n + 1",
    "math of a tensor": "y = x * math.sqrt({0})",
    "text of a tensor": "y = x * len(str({0}))",
    "percent of a tensor": "y = x * len('%d' % {0})",
}
#: What an array, or a float, may be asked for.
OF_ARRAYS = {"tensor as index of one row", "text of a tensor"}
NO_FLOAT = {way for way in ASKED if "index" in way or "size" in way or "slice" in way or "range" in way}
CASES = [
    (kind, way)
    for kind in Traced
    for way in ENDED_AT
    if (kind is not Traced.ARRAY or way in OF_ARRAYS) and (kind is not Traced.FLOAT or way not in NO_FLOAT)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "way"), CASES)
def test_the_table_is_what_dynamo_does(kind: Traced, way: str, tmp_path: Path) -> None:
    path = tmp_path / "numpy_example.py"
    path.write_text(source(ASKED[way].format(ONE_OF[kind])))
    assert bool(broken(path)) is (kind in ENDED_AT[way])
