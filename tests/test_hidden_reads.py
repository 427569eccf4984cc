"""Every spelling in which a tensor may be asked for its number: what breaks the graph is told, and nothing else is.

One table, each row is executed under Dynamo with its default settings, on a CPU. What breaks and what does not is what
this torch does; that the rules say the same of the same lines is what is tested.
"""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from patcher.finding import find
from patcher.harness.listener import Listener, listening
from patcher.settings import Settings
from rules import load_rules
from tests.dynamo import INSTALLED

HEAD = """\
import math
from dataclasses import dataclass
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

@dataclass
class State:
    position: torch.Tensor
    key: torch.Tensor
    width: int = 2

def lengths_of(x):
    return x.sum(-1).long(), x > 0

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(2))
        self.kept = {"position": torch.tensor([1, 2])}

    def forward(
        self, x: torch.Tensor, counts: torch.Tensor, one: torch.Tensor, state: State, cache: dict[str, torch.Tensor],
        rows: list[torch.Tensor],
    ):
        mask = x > 0
        y = x * 1
"""
#: Statements, one row behind the other.
ROWS = """\
start = counts[0]
y = x[:, start:]
---
start = state.position[0]
end = start + 1
state.key[:, start:end] = x[:, :1]
---
y = x[counts.max() :]
---
y = x[: counts.argmax()]
---
y = x[: cache["length"]]
---
y = x[: cache["position"][0]]
---
y = x[: self.steps]
---
y = x[: self.kept["position"][0]]
---
y = x[: rows[0]]
---
y = x[counts.argmax()]
---
for i in range(one):
    y = y + i
---
for i in range(counts.max()):
    y = y + i
---
for i in range(self.steps):
    y = y + i
---
y = torch.zeros(counts.max(), 3)
---
y = torch.zeros((counts.max(), 3))
---
y = x.new_zeros(counts.max(), 3)
---
y = torch.full((counts.max(),), 1.0)
---
y = torch.empty(counts.max(), 3).zero_()
---
y = x.view(counts[0] * 2, -1)
---
y = x.reshape(counts[0] * 2, -1)
---
y = x[None].expand(counts[0] + 1, -1, -1)
---
y = x.repeat(1, counts[0])
---
y = torch.arange(counts.max())
---
y = torch.arange(0, counts.max(), 1)
---
y = torch.linspace(0, 1, counts.max())
---
y = x.split(counts[0])[0]
---
y = torch.split(x, counts[0])[0]
---
y = torch.ones(6).split(counts.tolist())[0]
---
y = torch.split(torch.ones(6), list(counts))[0]
---
y = x.chunk(counts[0])[0]
---
y = F.pad(x, (0, counts.max()))
---
y = x.roll(counts[0])
---
y = x.topk(counts[1])[0]
---
y = x.narrow(0, 0, counts[0])
---
y = x.narrow(0, counts[1], 2)
---
y = x.select(0, counts[1])
---
y = F.one_hot(counts)
---
y = F.one_hot(counts, counts.max() + 1)
---
y = F.interpolate(x[None, None], size=(counts.max(), 3))
---
n = int(counts.sum())
---
n = int(one)
---
n = float(counts.sum())
---
n = bool(counts.any())
---
n = complex(x.sum())
---
n = math.sqrt(counts.sum())
---
n = math.ceil(x.sum())
---
n = math.floor(x.sum())
---
n = math.ceil(x.sum() / 2)
---
n = math.log(counts.max())
---
n = math.isnan(x.sum())
---
n = math.isclose(x.sum(), 2.0)
---
n = math.pow(x.sum(), 2)
---
n = math.exp(x.sum())
---
n, m = counts[:2]
y = x[:n]
---
y = y * (2 in counts)
---
y = y * (one in counts)
---
if one in [1, 2]:
    y = y + 1
---
n = sorted(counts)
---
n = max(counts.tolist())
---
n = max(c.item() for c in counts)
---
n = max(int(c) for c in counts)
---
n = max(c for c in counts)
y = x[:, :n]
---
n = any(counts > 1)
---
n = all(c > 1 for c in counts)
---
text = f"{x.sum().item():.2f}"
---
text = "%d" % counts.sum()
---
text = str(counts.sum())
---
text = "a" + str(counts)
---
text = repr(counts)
---
n = set(counts.tolist())
---
n = {int(c): 1 for c in counts}
---
n = {c.item(): 1 for c in counts}
---
n = {1: 2, 6: 3}[counts.sum().item()]
---
n = {1: 2, 6: 3}.get(counts.sum().item())
---
n = {6: 3}[int(counts.sum())]
---
n = [None] * counts.sum()
---
n = [None] * int(counts.sum())
---
n = (0,) * counts[0]
---
n = counts.cpu().numpy()
y = x[: n[0]]
---
n = counts.detach().cpu().numpy().tolist()
---
n = int(counts.cpu().numpy().max())
---
n = counts.numpy().sum()
y = torch.zeros(n)
---
n = np.where(counts.numpy() > 1)[0]
y = y * len(n)
---
n = [c * 2 for c in counts.tolist()]
---
n = [x[:c] for c in counts.tolist()]
---
n = [x[:c] for c in counts]
---
n = [torch.zeros(c) for c in counts]
---
n = {i: c for i, c in enumerate(counts.tolist())}
---
n = list(map(int, counts))
---
n = [int(c) for c in counts]
---
n = [float(c) for c in rows]
---
n, m = counts.tolist()[:2]
---
n = counts.tolist()
y = x[: n[0]]
---
y = y * counts.tolist()[0]
---
y = y if one > 1 else y + 1
---
if one > 1:
    y = y + 1
---
if one:
    y = y + 1
---
if not one:
    y = y + 1
---
if counts.any():
    y = y + 1
---
if (counts > 1).all() and True:
    y = y + 1
---
if state.position[0] > 1:
    y = y + 1
---
if cache["length"] > 1:
    y = y + 1
---
if self.steps > 1:
    y = y + 1
---
if self.steps == 2:
    y = y + 1
---
if rows[0] > 0:
    y = y + 1
---
while one > 0:
    one = one - 1
---
assert (counts > 0).all(), f"positive {counts}"
---
n = counts.sum() and 2
---
n = counts.sum() or 2
---
n = not counts.sum()
---
n = 0 < counts.sum() < 9
---
n = counts.sum() > 0 and x.sum() > 0
---
n = torch.equal(x, x * 1)
---
n = torch.allclose(x, x * 1)
---
n = x.equal(x * 1)
---
n = torch.is_nonzero(counts.sum())
---
y = x[mask]
---
y = x[x > 0]
---
y = x[~mask]
---
y = x[mask & (x > 1)]
---
y[mask] += 1
---
y[~mask] *= 2
---
state.key[mask] += 1
---
y[mask] = x[mask]
---
y = mask.nonzero()
---
y = torch.nonzero(mask)
---
y = torch.where(mask)[0]
---
i, j = torch.where(mask)
---
i, j = mask.nonzero(as_tuple=True)
---
y = torch.argwhere(mask)
---
y = counts.unique()
---
y = torch.unique(counts, return_inverse=True)[1]
---
y = torch.bincount(counts)
---
y = torch.bincount(counts, minlength=9)
---
y = x.masked_select(mask)
---
y = x.repeat_interleave(torch.tensor([1, 2, 1, 0]), 0)
---
y = torch.repeat_interleave(x, counts[:1].expand(4), dim=0)
---
y = torch.repeat_interleave(counts)
---
y = torch.combinations(counts)
---
y = torch.tensor([c.item() for c in counts])
---
y = torch.tensor(counts.tolist())
---
y = torch.tensor([float(one), 2])
---
y = torch.full_like(x, counts.sum())
---
y = x.tril(counts[0])
---
y = F.dropout(x, p=x.abs().mean() / 100)
---
n = counts.sum().__index__()
---
n = len(set(c.item() for c in counts))
---
for n in counts.tolist():
    y = y + n
---
for i, n in enumerate(counts.tolist()):
    y = y + x[:n].sum()
---
for i, n in enumerate(counts):
    y = y + x[:n].sum()
---
for n in counts:
    y = y + x[: n.item()].sum()
---
for n in counts:
    if n > 1:
        y = y + 1
---
for row, m in zip(x, mask):
    y = y + row[m].sum()
---
for i in range(4):
    y = y + x[i, mask[i]].sum()
---
n = counts[counts.argmax()]
---
n = x[torch.arange(4), counts.argmax()]
---
n = x[0, counts.argmax()]
---
y = y.add_(1)[:, : counts[0]]
---
k = counts.min().item()
y = y[:k]
---
n = counts.data[0]
y = y[:n]
---
n = counts.prod()
y = y.reshape(-1)[:n]
---
y = y.unflatten(0, (counts[0], -1))
---
y = torch.stack([x[i] for i in counts.tolist()])
---
y = x[counts.tolist()]
---
y = x[counts[0] : counts[0] + 2, None]
---
y = x[slice(0, counts[0])]
---
y = x.unsqueeze(counts[1])
---
y = torch.nn.functional.avg_pool1d(x[None], counts[1])
---
y = torch.nn.functional.adaptive_avg_pool1d(x[None], counts[1])
---
y = torch.randint(0, counts.max(), (3,))
---
y = torch.multinomial(x.abs() + 1, counts[1])
---
y = x.kthvalue(counts[1], dim=0)[0]
---
y = torch.nn.functional.unfold(x[None, None], (counts[1], 1))
---
y = x.unfold(0, counts[0], 1)
---
y = torch.as_strided(x, (counts[0], 1), (1, 1))
---
y = x.expand(counts[1], *x.shape)
---
y = torch.broadcast_to(x, (counts[1], *x.shape))
---
y = x.new_full((counts[0],), 1)
---
y = torch.normal(x.mean(), 1.0, (counts[0],))
---
n = counts.sum()
while n > 1:
    y = y * 2
    n = n - 3
---
while counts.sum() > 100:
    y = y + 1
---
n = one + 1
while n > 1:
    n = n - 1
---
y = x.unsqueeze(one - 1)
---
y = x.view(one * 2, -1)
---
y = x[:one]
---
y = F.one_hot(counts, num_classes=-1)
---
for n in rows:
    y = y + x[:n].sum()
---
y = x[: sum(rows)]
---
y = x[one]
y = y[..., self.steps]
for i in range(len(counts)):
    y = y + i
y = torch.zeros(one, 3)
y = torch.arange(one)
n = abs(counts.sum())
n = math.prod(counts)
n = np.ceil(x.sum())
---
n = np.sqrt(counts.sum().numpy())
n = np.prod(counts)
n = np.array(counts)
n = np.asarray(counts)
for c in counts:
    y = y * c
for c in x:
    y = y * c.sum()
a, b, c = counts
y = y * a
a, *b = counts
y = y * a
---
y = y * (counts.sum() in (1, 6))
y = y * (one in [1, 2])
n = max(counts)
n = max(counts[0], counts[1])
n = max(counts[0], 2)
n = min(one, 2)
n = sum(counts)
n = sum([c.sum() for c in rows])
y = y + n
---
n = max([len(r) for r in x])
text = f"{counts.sum()}"
text = f"{counts.sum():.2f}"
text = "{}".format(counts.sum())
n = list(counts)
y = y * n[0]
n = tuple(counts)
y = y * n[0]
n = set(counts)
n = {c: 1 for c in counts}
---
n = {}
n[counts.sum()] = 1
n = [0] * one
n = [0] * len(counts)
n = counts.numpy()
y = y * torch.from_numpy(n)[0]
n = counts.cpu().numpy()[0]
y = y * n
n = [c for c in counts]
n = list(map(lambda c: c * 2, counts))
n = list(zip(counts, counts))
---
assert counts.sum() > 0
assert (counts > 0).all(), "positive"
y[mask] = 0
y = torch.tensor([counts.sum(), 1])
y = torch.full((2,), counts.sum())
y = x.masked_fill(mask, counts.sum())
y = x.clamp(max=counts.sum())
y = x.fill_(counts.sum())
---
y = x ** counts.sum()
n = counts in rows
for row in mask:
    y = y + x[row.long()].sum()
n = next(iter(counts))
y = x[[0, 1]]
y = x.index_select(0, counts[0])
y = x.new_tensor([counts[0], 1])
y = x.narrow(0, one, 1)
---
y = x.kthvalue(one, dim=0)[0]
y = x.topk(one)[0]
y = x[torch.arange(4), one]
y = x[..., one]
y = F.one_hot(counts, 9)
for n in cache.values():
    y = y + n.sum()
if state.width > 1:
    y = y + 1
if state.position is None:
    y = y + 1
---
y = y + sum(rows)
y = x[: sum([len(r.shape) for r in rows])]
y = x[: max(len(rows), 1)]
y = x[: min(x.shape[0], 2)]
"""
FIRST = HEAD.count("\n") + 1
RULES = load_rules()
#: Rules that tell of a loop or function as a whole.
REGIONS = frozenset({"FC204", "FC207"})
TELLING = frozenset(rule.code for rule in RULES if "graph break" in rule.costs) - REGIONS


def source(row: str) -> str:
    return f"{HEAD}{textwrap.indent(row, ' ' * 8)}\n        return y * 3\n"


def told(text: str) -> set[int]:
    result = find(text, "example.py", RULES, Settings(target_torch=INSTALLED))
    assert not result.bugs
    return {f.line - FIRST + 1 for f in result.found if f.code in TELLING and f.line >= FIRST}


def broken(path: Path) -> set[int]:
    """The lines of the row at which the graph breaks, also where that is inside a function of PyTorch's."""
    spec = importlib.util.spec_from_file_location("asked_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["asked_example"] = module  # where a dataclass looks for its annotations
    try:
        spec.loader.exec_module(module)
        state = module.State(torch.tensor([2, 2]), torch.zeros(4, 3))
        cache, rows = {"position": torch.tensor([1, 1]), "length": torch.tensor(2)}, [torch.tensor(1), torch.tensor(2)]
        x = torch.arange(12.0).view(4, 3) - 3
        torch._dynamo.reset()
        listener = Listener(str)
        with listening(listener, False), torch.no_grad():
            compiled = torch.compile(module.Net(), backend="eager")
            compiled(x, torch.tensor([2, 1, 3]), torch.tensor(2), state, cache, rows)
    finally:
        del sys.modules["asked_example"]
    stacks = [told["stack"] for told in listener.details.values() if told.get("stack")]
    places = [stack[-1].rpartition(" in ")[0].rpartition(":") for stack in stacks]
    return {int(line) - FIRST + 1 for file, _, line in places if file == str(path)}


@pytest.mark.slow
@pytest.mark.parametrize("row", [row.strip("\n") for row in ROWS.split("---\n")])
def test_what_breaks_is_told_and_nothing_else(row: str, tmp_path: Path) -> None:
    text = source(row)
    path = tmp_path / "asked_example.py"
    path.write_text(text)
    assert told(text) == broken(path)
