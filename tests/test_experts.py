"""Experts that a mask sends rows to, as people write them: one graph, the same numbers and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from patcher.edit.engine import patch
from patcher.settings import Settings
from rules import load_rules

MODULE = """\
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(4, 3)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)) for _ in range(3)])
        self.register_buffer("sent", torch.zeros(3))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        weights = self.router(rows).softmax(-1)
        best, chosen = weights.argmax(-1), weights.topk(2, dim=-1).indices.view(*x.shape[:-1], 2)
        out, whole, number = torch.zeros_like(rows), torch.zeros_like(x), 0
        sent = (chosen == 0).any(dim=-1)
        for i, expert in enumerate(self.experts):
            mask = best == i
BODY
        return out.view_as(x) + whole
"""
BODIES = {
    "plain": ["out[mask] = expert(rows[mask])"],
    "a weight for each row": ["out[mask] = expert(rows[mask]) * weights[mask, i].unsqueeze(-1)"],
    "a test, and a count": [
        "if mask.any():",
        "    out[mask] = expert(rows[mask]) * weights[mask, i, None]",
        "    self.sent[i] += mask.sum()",
    ],
    "the next one": ["if not mask.any():", "    continue", "own = rows[mask]", "out[mask] += expert(own)"],
    "none are counted": ["if mask.sum() == 0:", "    continue", "out[mask] = expert(rows[mask])"],
    "a flattened mask": [
        "sent = (chosen == i).any(dim=-1)",
        "flat = sent.view(-1)",
        "if flat.any():",
        "    own = expert(rows[flat])",
        "    share = weights[flat, i].unsqueeze(1)",
        "    whole[sent] += (own * share).squeeze(1)",
    ],
}
NOT = {
    "the next one, with more behind": ["if not mask.any():", "    continue", "self.sent[i] += 1"],
    "something else is counted": ["if mask.any():", "    out[mask] = expert(rows[mask])", "    self.sent[i] += 1"],
    "a number is counted up": [
        "if mask.any():",
        "    out[mask] = expert(rows[mask])",
        "    number += mask.sum()",
    ],
    "a mask that gets another name's place": [
        "flat = sent.view(-1)",
        "sent = (chosen == i).any(dim=-1)",
        "whole[sent] += expert(rows[flat])",
    ],
    "what is counted is no mask": ["if (best - 1).sum() == 0:", "    continue", "rows[(best - 1) > 0] = 0"],
    "a mask that is made of rows": [
        "sent = (chosen == i).any(dim=-1)",
        "flat = sent.view(-1)",
        "sent = expert(rows[flat]).sum(-1) > 0",
        "whole.view(-1, 4)[: sent.shape[0]][sent] += expert(rows[flat])[sent]",
    ],
    "a mask that changes": [
        "sent = (chosen == i).any(dim=-1)",
        "flat = sent.reshape(-1)",
        "sent[0] = False",
        "whole[sent] += expert(rows[flat])[: sent.sum()]",
    ],
    "another weight for each": ["out[mask] = expert(rows[mask]) * weights[mask, best[mask]].unsqueeze(-1)"],
}


def of(body: list[str]) -> str:
    return MODULE.replace("BODY", "\n".join(f"            {line}" for line in body))


def fixed(text: str) -> str:
    return patch(text, "experts.py", load_rules(), Settings(unsafe=True)).text


def ran(text: str, x: torch.Tensor, compiled: bool) -> tuple[Any, ...]:
    names: dict[str, Any] = {}
    exec(text, names)
    torch.manual_seed(0)
    model = names["Experts"]()
    out = (torch.compile(model, backend="aot_eager", fullgraph=True) if compiled else model)(x)
    out.square().sum().backward()
    none = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return out.detach(), model.sent, *none


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_one_graph_and_the_same_numbers(body: list[str]) -> None:
    text = of(body)
    changed = fixed(text)
    torch.manual_seed(1)
    for x in (torch.randn(2, 5, 4), torch.randn(1, 1, 4)):
        torch._dynamo.reset()
        eager, again, compiled = ran(text, x, False), ran(changed, x, False), ran(changed, x, True)
        assert all(map(torch.equal, eager, again))
        torch.testing.assert_close(compiled, eager)


@pytest.mark.parametrize("body", NOT.values(), ids=NOT)
def test_what_is_more_than_that_stays(body: list[str]) -> None:
    (kept, *_) = [
        line for line in of(body).splitlines() if "mask.any()" in line or "expert(rows" in line or ".sum() == 0" in line
    ]
    assert kept in fixed(of(body))
    assert "_picked" not in fixed(of(body)) or "mask.any()" in kept
