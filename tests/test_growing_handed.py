"""Room for caches that grow (FC305, kv-cache=static): what a model may do with one, and what it gives with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from patcher.engine import patch
from patcher.results import PatchResult
from patcher.runner import run
from patcher.settings import Settings
from rules.fc305_growing_cache.rule import GrowingCache
from tests.dynamo import PREAMBLE, imported

SETTINGS = Settings(unsafe=True, strategies={"kv-cache": "static"})

ATTENTION = """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.register_buffer("bias", torch.tril(torch.ones(20, 20)).view(1, 1, 20, 20))

    def forward(self, x, past=None, mask=None):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, 2, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        if past is not None:
            k = torch.cat([past[0], k], dim=2)
            v = torch.cat([past[1], v], dim=2)
        present = (k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return y.transpose(1, 2).flatten(2), present
"""

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])
        self.table = nn.Embedding(400, 8)

    def forward(self, x, past=None, mask=None):
        presents = []
        for i, layer in enumerate(self.layers):
            y, present = layer(x, past[i] if past is not None else None, mask)
            x = torch.tanh(x + y)
            presents.append(present)
        return x, presents
"""

LOOP = """
@torch.no_grad()
def generate(model, x, steps):
    past, found, mask = None, [], torch.ones(x.shape[0], x.shape[1])
    for _ in range(steps):
        y, past = model(x, past, mask)
        mask = torch.cat([mask, mask[:, -1:]], 1)
        x = y[:, -1:]
        found.append(x)
    return torch.cat(found, 1)
"""

ATTEND = "y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)"
JOIN = "        if past is not None:\n            k ="
MODEL = ATTENTION + NET + LOOP


def static(source: str) -> PatchResult:
    result = patch(PREAMBLE + source, "example.py", (GrowingCache(),), SETTINGS)
    assert result.bugs == ()
    return result


def generated(source: str) -> list[torch.Tensor]:
    """Two sequences in turn, another batch, and the first again."""
    with imported(source) as module:
        torch.manual_seed(0)
        net = module.Net().eval()
        first = torch.randn(2, 5, 8)
        rounds = ((first, 6), (torch.randn(2, 3, 8), 9), (torch.randn(1, 4, 8), 12), (first, 6))
        return [module.generate(net, x, steps) for x, steps in rounds]


#: What is changed, and a part of why there is no room. A buffer would raise, or give something else.
LEFT = {
    "asks whether it is a tensor": (
        JOIN,
        JOIN.replace("None:", "None and isinstance(past[0], torch.Tensor):"),
        "asks what is kept what it is",
    ),
    "asks torch": (JOIN, JOIN.replace("None:", "None and torch.is_tensor(past[0]):"), "`torch.is_tensor(past[0])`"),
    "its dtype": (JOIN, f"        k = k if past is None else k.to(past[0].dtype)\n{JOIN}", "`past[0].dtype` asks"),
    "its device, in the model": (
        "        presents = []",
        "        x = x if past is None else x.to(past[0][0].device)\n        presents = []",
        "`past[0][0].device` asks",
    ),
    "kept by the attention, too": ("        y = F", "        self.last = k\n        y = F", "keeps it elsewhere, too"),
    "what comes back is computed with": (
        "x = torch.tanh(x + y)",
        "x = torch.tanh(x + y) + present[0].mean()",
        "`present[0].mean` asks",
    ),
    "its length, in a function with another name for it": (
        "        presents = []",
        "        x = x + filled(past)\n        presents = []",
        "`filled(past)` is given what is kept",
    ),
    "more in it than keys and values": (
        "        present = (k, v)",
        "        q = q if past is None else q + past[2][:, None, None, None]\n        present = (k, v, x.mean((1, 2)))",
        "takes a part of what is kept by its place",
    ),
    "one for all layers": ("past[i]", "past[0]", "grows more than once"),
    "two joins to one": ("[past[1], v]", "[past[0], v]", "`past[0]` grows more than once"),
    "called twice with it": (
        "            y, present",
        "            z, _ = layer(x, past[i] if past is not None else None, mask)\n            y, present",
        "grows more than once",
    ),
    "another attention that cuts": (
        "class Net",
        ATTENTION.lstrip().replace("class Attention", "class Other").replace("= (k, v)", "= (k, v[:, :, -9:])")
        + "\n\nclass Net",
        "(in `Other.forward`)",
    ),
    "a mask as long as what is kept": (
        ATTEND,
        "w = (q @ k.transpose(-2, -1) + (mask[:, None, None] - 1) * 1e9).softmax(-1)\n        y = w @ v",
        "may be a mask as long as what is kept",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_model_that_asks_more_of_its_cache_is_left_alone(name: str) -> None:
    old, new, reason = LEFT[name]
    assert old in MODEL
    helper = "\n\ndef filled(c):\n    return 0 if c is None else c[0][0].shape[2]\n"
    source = MODEL.replace(old, new, 1) + helper
    result = static(source)
    assert result.text == PREAMBLE + source
    assert any(reason in finding.assumption for finding in result.found), [f.assumption for f in result.found]


#: What is changed, and still gets room.
ROOMY = {
    "as it is": ("", ""),
    "a mask that stands ready, shorter than the room": (
        ATTEND,
        "y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.bias[:, :, t - 1 : t, :k.size(2)] > -1)",
    ),
    "the same for scores": (
        ATTEND,
        "w = (q @ k.transpose(-2, -1)).masked_fill(self.bias[:, :, -1:, : k.size(2)] == 0, -1e9)\n"
        "        y = w.softmax(-1) @ v",
    ),
    "a softmax within, and a size that does not grow": (
        ATTEND,
        "y = F.softmax(q @ k.transpose(-2, -1) / k.size(-1) ** 0.5, dim=-1) @ v",
    ),
    "the user's mask, which grows, for scores": (
        ATTEND,
        "w = q @ k.transpose(-2, -1) + (mask[:, None, None, : k.size(2)] - 1) * 1e9\n        y = w.softmax(-1) @ v",
    ),
    "the user's mask for the attention": (
        ATTEND,
        "y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :] > 0)",
    ),
    "how many layers it has": (
        "        presents = []",
        "        presents = [] if past is None or len(past) == 2 else 1",
    ),
    "a length that says where the input starts": (
        "        presents = []",
        "        n = past[0][0].shape[2] if past is not None else 0\n"
        "        x = x + self.table(torch.arange(n, n + x.shape[1]))\n        presents = []",
    ),
    "until a sum is large": (
        "        found.append(x)",
        "        found.append(x)\n        if x.sum() > 9:\n            break",
    ),
}


@pytest.mark.parametrize("name", ROOMY)
def test_a_cache_with_room_gives_the_same(name: str) -> None:
    source = MODEL.replace(*ROOMY[name]) if name != "as it is" else MODEL
    result = static(source)
    assert "past = _with_room(past, 2, more=steps)" in result.text, [f.assumption for f in result.found]
    for a, b in zip(generated(PREAMBLE + source), generated(result.text), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_training_goes_on_to_grow() -> None:
    source = MODEL.replace("@torch.no_grad()\n", "")
    found = []
    for text in (PREAMBLE + source, static(source).text):
        with imported(text) as module:
            torch.manual_seed(0)
            net = module.Net()
            module.generate(net, torch.randn(2, 3, 8), 4).sum().backward()
            found.append([p.grad for p in net.parameters() if p.grad is not None])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("asks", [False, True])
def test_a_loop_in_another_file_makes_room_where_the_model_can_have_it(tmp_path: Path, asks: bool) -> None:
    """The attention in a file, the model in a second one, the loop in a third."""
    attention = ATTENTION.replace(JOIN, JOIN.replace("None:", "None and past[0].ndim == 4:")) if asks else ATTENTION
    (tmp_path / "attention.py").write_text(PREAMBLE + attention)
    (tmp_path / "net.py").write_text(f"{PREAMBLE}from attention import Attention\n{NET}")
    (tmp_path / "loop.py").write_text(
        f"{PREAMBLE}from net import Net\n{LOOP.replace('model', 'net: Net', 1).replace('model', 'net')}"
    )
    results = {Path(r.path).name: r for r in run([str(tmp_path)], (GrowingCache(),), SETTINGS, jobs=1)}
    made = (results["loop.py"].after or b"").decode()
    assert ("_with_room(past, 2, more=steps)" in made) is not asks
    assert results["attention.py"].changed is not asks
