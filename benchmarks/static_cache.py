"""nanoVLM's growing cache in buffers of a stated capacity: as FC305 writes it, and by hand.

    python benchmarks/static_cache.py FOLDER [--document docs/results/caches.md]

FOLDER is a checkout of nanoVLM (huggingface/nanoVLM at 4e0c096). Its language model is run with random weights: a
prefill of 16 and 12 steps, for 2, 3 and 2 rows, the hidden state fed back. ``kv-cache=static`` is what
``--unsafe --strategy kv-cache=static`` makes of the models. ``by hand``: `attend` and `step` below take the place of
the two methods of the patched source that know the cache. Figures are Dynamo's (backend "eager", a CPU); outputs are
compared with those of the source as it is, eagerly. A cache that is full has to raise.
What they take on a GPU is in benchmarks/static_graphs.py.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_map_only

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "cases")]
from _settings import DEVICE, RELEASED  # noqa: E402

PREFILL, STEPS, ROOM = (64, 32, 128) if RELEASED else (16, 12, 64)
ROWS = (2, 3, 2)
TOLERANCE = 1e-5
HEAD = ("form", "breaks", "graphs", "recompiles", "limits hit", "launches, last round of 13 calls", "furthest output")

Cache = list[dict[str, torch.Tensor]]
#: What is done with outputs that the loop goes on to use.
Keep = Callable[[Any], Any]


def empty_cache(decoder: Any, rows: int) -> Cache:
    """Buffers for each block: keys and values (rows, heads, ROOM, size). Made where nothing is compiled, and marked."""
    attention = decoder.blocks[0].attn
    shape = (rows, attention.n_kv_heads, ROOM, attention.head_dim)
    like = attention.k_proj.weight
    cache = [{name: like.new_zeros(shape) for name in ("key", "value")} for _ in decoder.blocks]
    for buffer in (b for block in cache for b in block.values()):
        torch._dynamo.mark_static_address(buffer)
    return cache


def attend(self: Any, x: Any, cos: Any, sin: Any, attention_mask: Any = None, block_kv_cache: Any = None) -> Any:
    """The attention with a cache that is written at ``places`` and read whole, under a mask.

    ``attention_mask`` (B, ROOM), or None: the user's own, 1 where a key may be seen.
    """
    from models.language_model import apply_rotary_pos_embd

    cache, places = block_kv_cache
    rows, length, width = x.size()
    q = self.q_proj(x).view(rows, length, self.n_heads, self.head_dim).transpose(1, 2)
    k = self.k_proj(x).view(rows, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
    v = self.v_proj(x).view(rows, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
    q, k = apply_rotary_pos_embd(q, k, cos, sin)
    cache["key"].index_copy_(2, places, k)
    cache["value"].index_copy_(2, places, v)
    keys = cache["key"].repeat_interleave(self.n_kv_groups, dim=1)
    values = cache["value"].repeat_interleave(self.n_kv_groups, dim=1)
    seen = torch.arange(keys.size(2), device=x.device) <= places[:, None]  # what is_causal said, and no empty place
    if attention_mask is not None:
        seen = seen & (attention_mask != 0)[:, None, None, :]
    y = F.scaled_dot_product_attention(
        q, keys, values, attn_mask=seen, dropout_p=self.dropout if self.training else 0.0
    )
    y = self.out_proj(y.transpose(1, 2).contiguous().view(rows, length, width))
    return self.resid_dropout(y), block_kv_cache


def step(self: Any, x: Any, attention_mask: Any = None, kv_cache: Any = None, start_pos: Any = None) -> Any:
    """The model, from the position ``start_pos`` on, a 0-d tensor of int64; the cache is written, and not returned."""
    if self.lm_use_tokens:
        x = self.token_embedding(x)
    rows, length, _ = x.size()
    torch._assert_async(start_pos + length <= kv_cache[0]["key"].size(2), "the cache is full")
    places = start_pos + torch.arange(length, device=x.device)
    cos, sin = self.rotary_embd(places.unsqueeze(0).expand(rows, -1))
    for block, cache in zip(self.blocks, kv_cache, strict=True):
        x, _ = block(x, cos, sin, attention_mask, (cache, places))
    x = self.norm(x)
    return self.head(x) if self.lm_use_tokens else x


def mine(output: Any) -> Any:
    """Tensors that the next step does not write over, as CUDA graphs do where they wrote these."""
    return tree_map_only(torch.Tensor, torch.clone, output)


def last(states: torch.Tensor) -> torch.Tensor:
    """The state of the last place, (rows, 1, width), in memory of its own: no view with another offset."""
    return states[:, -1:, :].clone()


def growing(decoder: Any, words: torch.Tensor, keep: Keep = mine) -> Callable[[Any], list[torch.Tensor]]:
    """A round as the source has it: the cache comes back longer from each call."""

    def run(f: Any) -> list[torch.Tensor]:
        states, cache = keep(f(decoder.token_embedding(words), attention_mask=None, kv_cache=None, start_pos=0))
        hidden = [states]
        for place in range(PREFILL, PREFILL + STEPS):
            states, cache = keep(f(last(states), attention_mask=None, kv_cache=cache, start_pos=place))
            hidden.append(states)
        return hidden

    return run


def roomy(decoder: Any, words: torch.Tensor, keep: Keep = mine) -> Callable[[Any], list[torch.Tensor]]:
    """The same round with the two calls that FC305 writes into a loop."""
    models = sys.modules[type(decoder).__module__]

    def run(f: Any) -> list[torch.Tensor]:
        states, cache = f(decoder.token_embedding(words), attention_mask=None, kv_cache=None, start_pos=0)
        cache = models._with_room(cache, 2, more=STEPS)
        hidden = [keep(states)]
        for place in range(PREFILL, PREFILL + STEPS):
            start = models._place(place, cache)
            states, cache = f(last(states), attention_mask=None, kv_cache=cache, start_pos=start)
            hidden.append(keep(states))
        return hidden

    return run


def static(decoder: Any, words: torch.Tensor, keep: Keep = mine) -> Callable[[Any], list[torch.Tensor]]:
    """The same round with buffers, which the caller makes and keeps, as it keeps the position."""

    def run(f: Any) -> list[torch.Tensor]:
        cache = empty_cache(decoder, words.size(0))
        place = torch.zeros((), dtype=torch.long, device=words.device)
        states = f(decoder.token_embedding(words), kv_cache=cache, start_pos=place)
        hidden, place = [keep(states)], place + PREFILL
        for _ in range(STEPS):
            states = f(last(states), kv_cache=cache, start_pos=place)
            hidden, place = [*hidden, keep(states)], place + 1
        return hidden

    return run


@dataclass(frozen=True)
class Form:
    """What is run: the models as they are, or patched with these settings; ``by_hand``: with the two methods above."""

    patched: Mapping[str, Any] | None
    round: Callable[..., Callable[[Any], list[torch.Tensor]]]
    by_hand: bool = False


STATIC = {"unsafe": True, "strategies": {"kv-cache": "static"}}
FORMS = {
    "as it is": Form(None, growing),
    "patched today": Form({}, growing),
    "kv-cache=static": Form(STATIC, roomy),
    "buffers, by hand": Form({}, static, by_hand=True),
}


def raises_when_full(form: Form, decoder: Any, words: torch.Tensor) -> bool:
    """Whether more steps than there is room for are an error."""
    try:
        if form.by_hand:
            place = torch.tensor(ROOM, device=words.device)
            decoder(
                decoder.token_embedding(words[:, :1]), kv_cache=empty_cache(decoder, words.size(0)), start_pos=place
            )
        else:
            models = sys.modules[type(decoder).__module__]
            _, cache = decoder(decoder.token_embedding(words))
            cache = models._with_room(cache, 2, room=words.size(1))
            decoder(decoder.token_embedding(words[:, :1]), kv_cache=cache, start_pos=words.size(1))
    except (RuntimeError, IndexError):
        return True
    return False


def patch(folder: Path, settings: Mapping[str, Any]) -> None:
    """A run over the models in ``folder``."""
    from patcher.patching.runner import run
    from patcher.settings import Settings
    from rules import load_rules

    for result in run([str(folder / "models")], tuple(load_rules()), Settings(**settings), jobs=1):
        if result.changed:
            Path(result.path).write_bytes(result.after)


def decoders(folder: Path, temporary: Path) -> Iterator[tuple[str, Form, Any]]:
    """Each form with its decoder, whose weights are the same; the modules that it came from are the ones in force."""
    for number, (name, form) in enumerate(FORMS.items()):
        tree = temporary / str(number)
        shutil.copytree(folder / "models", tree / "models")
        if form.patched is not None:
            patch(tree, form.patched)
        for module in [m for m in sys.modules if m.partition(".")[0] in ("models", "_nanovlm")]:
            del sys.modules[module]
        sys.path.insert(0, str(tree))
        import _nanovlm

        decoder = _nanovlm.model().decoder
        sys.path.remove(str(tree))
        if form.by_hand:
            attention = type(decoder.blocks[0].attn)
            attention.forward, type(decoder).forward = attend, step  # type: ignore[method-assign]
        yield name, form, decoder


def counted(folder: Path, temporary: Path) -> tuple[str, bool]:
    """The table of what Dynamo makes of each form, and whether outputs differ or a full cache goes on."""
    from benchmarks.tables import table
    from patcher.harness.examples import count

    rows, truth, bad, full = [], None, False, []
    for name, form, decoder in decoders(folder, temporary):
        words = [sys.modules["_nanovlm"].words(r, PREFILL).to(DEVICE) for r in ROWS]
        eager = [form.round(decoder, w)(decoder) for w in words]
        truth = truth or eager
        f = count(decoder, [form.round(decoder, w) for w in words])
        far = max(furthest(truth, other) for other in (eager, list(f.outputs)))
        bad = bad or far > TOLERANCE
        if form.round is not growing:
            full.append(raises_when_full(form, decoder, words[0]))
        rows.append((name, f.breaks, f.graphs, f.recompiles, f.limit_hits, f.launches, f"{far:.1e}"))
    what = "is an error in both" if all(full) else "IS NO ERROR"
    told = f"torch {torch.__version__}. A step behind the last place of the buffers {what}."
    return f"{told}\n\n{table(HEAD, rows)}", bad or not all(full)


def furthest(a: Any, b: Any) -> float:
    return float(max((x - y).abs().max().item() for p, q in zip(a, b, strict=True) for x, y in zip(p, q, strict=True)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--document", type=Path)
    options = parser.parse_args()
    from benchmarks.tables import put

    with tempfile.TemporaryDirectory() as temporary, torch.no_grad():
        text, bad = counted(options.folder, Path(temporary))
    put(options.document, "static cache", text)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
