"""Buffers for caches that grow (FC305, kv-cache=static): what is left alone and why, and what the written code does."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from patcher.edit.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules.fc305_growing_cache.room_text import MAKING, READING
from rules.fc305_growing_cache.rule import GrowingCache
from tests.dynamo import PREAMBLE, imported

MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x, past=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=1), torch.cat([past[1], v], dim=1)
        y = F.scaled_dot_product_attention(q, k, v)
        return y, (k, v)
"""

LOOP = """
def decode(model, x, steps):
    past, found = None, []
    for _ in range(steps):
        x, past = model(x, past)
        found.append(x)
    return found
"""


def static(source: str, capacity: int | None = None) -> PatchResult:
    settings = Settings(unsafe=True, strategies={"kv-cache": "static"}, capacity=capacity)
    result = patch(PREAMBLE + source, "example.py", (GrowingCache(),), settings)
    assert result.bugs == ()
    return result


#: What is changed in the model, and a part of why there is no fix.
LEFT = {
    "no attention": ("F.scaled_dot_product_attention(q, k, v)", "q", "no attention is seen"),
    "two dimensions": ("torch.cat([past[1], v], dim=1)", "torch.cat([past[1], v], dim=-2)", "along one dimension"),
    "another name for it": ("        y = F", "        k = k.clone()\n        y = F", "is something else"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_an_attention_over_all_of_it_is_left_alone(name: str) -> None:
    old, new, reason = LEFT[name]
    assert old in MODEL
    result = static(MODEL.replace(old, new) + LOOP)
    assert not result.fixed
    assert any(reason in finding.assumption for finding in result.found), [f.assumption for f in result.found]


def test_capacity_is_what_the_user_says() -> None:
    endless = LOOP.replace("for _ in range(steps):", "while len(found) < steps:")
    assert "past = _with_room(past, 1, room=40)" in static(MODEL + endless, capacity=40).text
    assert "past = _with_room(past, 1, room=40)" in static(MODEL + LOOP, capacity=40).text


def test_the_default_strategy_rewrites_nothing() -> None:
    result = patch(PREAMBLE + MODEL + LOOP, "example.py", (GrowingCache(),), Settings(unsafe=True))
    assert result.text == PREAMBLE + MODEL + LOOP
    assert [finding.code for finding in result.found] == ["FC305"]


def test_it_is_done_once() -> None:
    once = static(MODEL + LOOP).text
    again = patch(once, "example.py", (GrowingCache(),), Settings(unsafe=True, strategies={"kv-cache": "static"}))
    assert again.text == once
    assert again.found == ()


@pytest.fixture(scope="module")
def written() -> Any:
    with imported("import torch\n\n\n" + "\n\n".join((*READING.values(), *MAKING.values()))) as module:
        yield module


@pytest.mark.parametrize(
    ("mask", "causal"), [(m, False) for m in ("none", "bool", "float", "short", "row")] + [("none", True)]
)
@pytest.mark.parametrize("new", [1, 3])
def test_attention_over_a_buffer_is_attention_over_what_is_in_it(
    written: Any, new: int, causal: bool, mask: str
) -> None:
    """Also several tokens with a past, for which torch aligns its causal mask with the first key."""
    torch.manual_seed(0)
    with torch.no_grad():
        past, k, q = (torch.randn(2, 2, n, 4) for n in (5, new, new))
        kept = written._with_room(past, -2, more=4)
        grown = written._join_kept(past, k, -2)
        assert written._join_kept(kept, k, -2) is kept
        assert torch.equal(written._whole(kept)[:, :, : 5 + new], grown)
        total = grown.shape[2]
        masks = {
            "none": None,
            "bool": torch.rand(2, 1, 1, total) > 0.3,
            "float": torch.randn(2, 1, new, total),
            "short": torch.zeros(2, 1, 1, 1),
            "row": torch.rand(new, total) > 0.3,
        }
        given = masks[mask]
        if given is not None and given.dtype == torch.bool:
            given[..., 0] = True
        expected = written._attention_over(grown)(q, grown, grown, attn_mask=given, is_causal=causal)
        whole = written._whole(kept)
        found = written._attention_over(kept)(q, whole, whole, attn_mask=given, is_causal=causal)
        assert torch.allclose(expected, found, atol=1e-6)
        scores = written._hide_empty(kept, q @ whole.transpose(-2, -1)).softmax(-1) @ whole
        assert torch.allclose((q @ grown.transpose(-2, -1)).softmax(-1) @ grown, scores, atol=1e-6)
        assert kept.length.item() == total


def test_a_full_buffer_is_an_error(written: Any) -> None:
    with torch.no_grad():
        kept = written._with_room(torch.ones(1, 2, 4), 1, room=3)
        written._join_kept(kept, torch.ones(1, 1, 4), 1)
        with pytest.raises(IndexError, match="out of bounds"):
            written._join_kept(kept, torch.ones(1, 1, 4), 1)
        with pytest.raises(RuntimeError):
            written._with_room(torch.ones(1, 5, 4), 1, room=3)


def test_with_gradients_it_grows(written: Any) -> None:
    past = (torch.ones(1, 2, 4, requires_grad=True), torch.ones(1, 2, 4))
    assert written._with_room(past, 1, more=3) is past
