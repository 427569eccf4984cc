"""Buffers for caches that grow (FC305, kv-cache=static): what is left alone and why, and what the written code does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from patcher.engine import patch
from patcher.results import PatchResult
from patcher.settings import Settings
from rules import load_rules
from rules.fc305_growing_cache.room_text import MAKING, READING
from rules.fc305_growing_cache.rule import GrowingCache
from tests.dynamo import PREAMBLE, compiled, eager, equal, imported

FOLDER = Path(__file__).resolve().parent / "caches"
GROWING = Path(__file__).resolve().parent.parent / "benchmarks" / "growing"

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
    "the mean of all keys": ("return y, (k, v)", "return y * k.mean(1, True), (k, v)", "computes with all of it"),
    "the last keys alone": ("q, k, v)\n", "q, k[:, -4:], v[:, -4:])\n", "takes a part of it by its place"),
    "keys that are handed out": ("return y, (k, v)", "return y, (k, v), k * 2", "hands on"),
    "how many there are, as a number": ("return y, (k, v)", "return y / k.shape[1], (k, v)", "counts what is kept"),
    "a mask by how many there are": (
        "attention(q, k, v)",
        "attention(q, k, v, torch.ones(x.shape[1], k.size(1)).tril(k.size(1) - x.shape[1]) > 0)",
        "counts what is kept",
    ),
    "weights that are handed out": (
        "y = F.scaled_dot_product_attention(q, k, v)",
        "w = torch.softmax(q @ k.transpose(1, 2), -1)\n        y = w.sum(-1, True) + w @ v",
        "`w.sum(-1, True)` computes with all of it",
    ),
    "a softmax over the queries": (
        "F.scaled_dot_product_attention(q, k, v)",
        "torch.softmax(q @ k.transpose(1, 2), dim=1) @ v",
        "is not along the last dimension",
    ),
    "what is new comes first": ("[past[0], k]", "[k, past[0]]", "does not join what is new behind what is kept"),
    "three at once": ("[past[0], k]", "[past[0], k, past[0]]", "does not join what is new behind what is kept"),
    "no attention": ("F.scaled_dot_product_attention(q, k, v)", "q", "no attention is seen"),
    "two dimensions": ("torch.cat([past[1], v], dim=1)", "torch.cat([past[1], v], dim=0)", "along one dimension"),
    "a function that computes": ("attention(q, k, v)", "attention(q, F.normalize(k), v)", "computes with all of it"),
    "more of it than a number": (
        "        y = F",
        "        if k.shape[1] > 9:\n            q = q * 2\n        y = F",
        "`k.shape[1] > 9` counts what is kept",
    ),
    "as many of a table as there are": (
        "attention(q, k, v)",
        "attention(q * q[0, 0, : k.shape[1]].mean(), k, v)",
        "computes with all of it",
    ),
    "a name of ours": (
        "class Net",
        "def _whole(x):\n    return x[:1]\n\n\nclass Net",
        "`_whole` is something else here",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_an_attention_over_all_of_it_is_left_alone(name: str) -> None:
    old, new, reason = LEFT[name]
    source = MODEL + LOOP
    assert old in source
    result = static(source.replace(old, new))
    assert result.text == PREAMBLE + source.replace(old, new)
    told = [finding.assumption for finding in result.found]
    assert not told or any(reason in t for t in told), told
    assert told or name in ("three at once",), "nothing is reported"


#: What is changed in the loop, and a part of why no room is made there.
LOOPS = {
    "beams": ("found.append(x)", "past = tuple(t.flip(0) for t in past)", "makes another one of it"),
    "taken back": ("found.append(x)", "past = past[0][:, :-1], past[1][:, :-1]", "makes another one of it"),
    "read": ("found.append(x)", "found.append(past[0])", "does something else with `past`"),
    "kept": ("found.append(x)", "found.append(past)", "does something else with `past`"),
    "given away": ("return found", "return past", "does something else with `past`"),
    "somebody's": ("steps):\n    past, found = None, []", "steps, past):\n    found = []", "comes from somebody else"),
    "on and on": (
        "for _ in range(steps):\n        x, past = model(x, past)",
        "for _ in x:\n        for _ in range(steps):\n            x, past = model(x, past)",
        "--capacity",
    ),
    "twice": (
        "    return found",
        "    for _ in range(steps):\n        x, past = model(x, past)\n    return found",
        "--capacity",
    ),
    "two in a turn": ("found.append(x)", "x, past = model(x, past)", "--capacity"),
    "goes on from one past": ("x, past = model(x, past)", "x, _ = model(x, past)", "leaves it as it was"),
    "may be taken back": ("x, past = model(x, past)", "x, past_too = model(x, past)", "leaves it as it was"),
    "until it ends": ("for _ in range(steps):", "while x.sum() > 0:", "--capacity"),
    "as many as there come": ("for _ in range(steps):", "for _ in steps:", "--capacity"),
    "a function around it": ("return found", "return lambda: past", "also used by a function"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_does_more_with_its_cache_is_left_alone(name: str) -> None:
    old, new, reason = LOOPS[name]
    assert old in LOOP
    result = static(MODEL + LOOP.replace(old, new))
    assert not result.fixed
    assert any(reason in finding.assumption for finding in result.found), [f.assumption for f in result.found]


def test_one_loop_has_room_and_another_grows() -> None:
    beams = LOOP.replace("decode", "beams").replace("found.append(x)", "past = tuple(t.flip(0) for t in past)")
    result = static(MODEL + LOOP + beams)
    assert result.text.count("= _with_room(past, 1") == 1
    assert "the loop in `beams` is left as it is" in result.fixed[0].assumption


def test_a_loop_in_a_loop_that_starts_anew_has_room() -> None:
    anew = """
def decode(model, prompts, steps):
    found = []
    for x in prompts:
        past = None
        for _ in range(steps):
            x, past = model(x, past)
        found.append(x)
    return found
"""
    assert "            past = _with_room(past, 1, more=steps)" in static(MODEL + anew).text


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
        assert written._length_of(kept, -2).item() == written._length_of(grown, -2) == total


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


def test_only_a_part_gets_room(written: Any) -> None:
    with torch.no_grad():
        own, cross = torch.ones(1, 2, 4), torch.ones(1, 9, 4)
        made = written._with_room([((own, own), (cross, cross))], 1, more=3, part=(None, 0))
        assert [type(t).__name__ for t in made[0][0]] == ["_Kept", "_Kept"]
        kept = made[0][1][0]
        assert torch.equal(kept, cross)
        assert kept is not cross, "CUDA graphs write over what they gave"
        again = written._with_room(made, 1, more=3, part=(None, 0))
        assert again[0][1][0] is kept
        place = written._place(7, made)
        assert torch.equal(place, torch.tensor(7))
        assert written._place(7, [((own, own), cross)]) == 7


@pytest.mark.parametrize(
    ("name", "made"),
    [("gpt", "_with_room(past, -2, more=steps)"), ("encoder_decoder", "model(ids, states, _place(start, past), past)")],
)
def test_a_loop_that_is_given_its_model_generates_the_same(name: str, made: str) -> None:
    """Two prefixes in turn, and another batch: no round sees what an earlier one left."""
    source = (GROWING / f"{name}.py").read_text(encoding="utf-8")
    settings = Settings(unsafe=True, strategies={"kv-cache": "static"})
    result = patch(source, f"{name}.py", (GrowingCache(),), settings)
    assert made in result.text
    found = []
    for text in (source, result.text):
        with imported(text) as module:
            torch.manual_seed(0)
            model, given = module.build(True).eval(), module.given(True, "cpu")
            rounds = (given, tuple(t.flip(0) for t in given), tuple(t[:1] for t in given), given)
            found.append([module.generate(model, *g, 9) for g in rounds])
    for (tokens, sure), (expected, before) in zip(*found, strict=True):
        assert torch.equal(tokens, expected)
        assert torch.allclose(sure, before, atol=1e-4)


@pytest.mark.slow
def test_a_cache_of_the_wild_is_one_graph_for_all_steps() -> None:
    """Three rounds of a prefill and 20 steps, for batches of 1, 3 and 2: a graph for each, one more for the steps."""
    source = (FOLDER / "tuples_by_layer.py").read_text(encoding="utf-8")
    settings = Settings(unsafe=True, strategies={"kv-cache": "static"})
    result = patch(source, "tuples_by_layer.py", tuple(load_rules()), settings)
    assert result.text.count("past = _with_room(past, -2, more=steps + 1)") == 1
    assert "= _with_room(swapped" not in result.text
    for calls in ("rounds", "harder"):
        before, after = (
            f"{t}\n\nmake, calls, grad = build, {calls}, {calls == 'harder'}\n" for t in (source, result.text)
        )
        expected = [output for output, _ in eager(before).outputs]
        assert equal(expected, [output for output, _ in eager(after).outputs], 1e-5) is None
        found = compiled(after)
        assert equal(expected, list(found.outputs), 1e-5) is None
        assert calls == "harder" or (found.breaks, found.launches, found.limit_hits) == (0, 21, 0), str(found)
        assert calls == "harder" or found.recompiles <= 3, str(found)
