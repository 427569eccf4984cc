"""nanoVLM's growing cache, and the same cache in buffers of a stated capacity, written by hand: what FC305 would write.

    python benchmarks/static_cache.py FOLDER [--document docs/results/caches.md]

FOLDER is a checkout of nanoVLM (huggingface/nanoVLM at 4e0c096). Its models are patched by a default run and run with
the small random model of ``benchmarks/cases``: a prefill of 16 and 12 steps, for 2, 3 and 2 rows, the hidden state fed
back. ``static`` is the target form: `attend` and `step` below take the place of the two methods of the patched source
that know the cache. Figures are Dynamo's (backend "eager", a CPU); outputs are compared with those of the patched
source, eagerly. A cache that is full has to raise.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "cases")]
PREFILL, STEPS, ROOM = 16, 12, 32
ROWS = (2, 3, 2)
TOLERANCE = 1e-5
HEAD = ("form", "breaks", "graphs", "recompiles", "limits hit", "launches, last round of 13 calls", "furthest output")

Cache = list[dict[str, torch.Tensor]]


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


def growing(decoder: Any, words: torch.Tensor) -> Callable[[Any], list[torch.Tensor]]:
    """A round as the source has it: the cache comes back longer from each call."""

    def run(f: Any) -> list[torch.Tensor]:
        states, cache = f(decoder.token_embedding(words), attention_mask=None, kv_cache=None, start_pos=0)
        hidden = [states]
        for place in range(PREFILL, PREFILL + STEPS):
            states, cache = f(states[:, -1:, :], attention_mask=None, kv_cache=cache, start_pos=place)
            hidden.append(states)
        return hidden

    return run


def static(decoder: Any, words: torch.Tensor) -> Callable[[Any], list[torch.Tensor]]:
    """The same round with buffers, which the caller makes and keeps, as it keeps the position."""

    def run(f: Any) -> list[torch.Tensor]:
        cache, place = empty_cache(decoder, words.size(0)), torch.zeros((), dtype=torch.long)
        states = f(decoder.token_embedding(words), kv_cache=cache, start_pos=place)
        hidden, place = [states], place + PREFILL
        for _ in range(STEPS):
            states = f(states[:, -1:, :], kv_cache=cache, start_pos=place)
            hidden, place = [*hidden, states], place + 1
        return hidden

    return run


def raises_when_full(decoder: Any) -> bool:
    """Whether a step behind the last place is an error."""
    cache = empty_cache(decoder, 1)
    try:
        decoder(torch.zeros(1, 1, decoder.cfg.lm_hidden_dim), kv_cache=cache, start_pos=torch.tensor(ROOM))
    except RuntimeError as e:
        return "full" in str(e)
    return False


def patch(folder: Path) -> None:
    """A default run over the models in ``folder``."""
    from patcher.runner import run
    from patcher.settings import Settings
    from rules import load_rules

    for result in run([str(folder / "models")], tuple(load_rules()), Settings(), jobs=1):
        if result.changed:
            Path(result.path).write_bytes(result.after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--document", type=Path)
    options = parser.parse_args()
    from benchmarks.tables import put, table
    from patcher.harness.examples import count

    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary)
        shutil.copytree(options.folder / "models", tree / "models")
        patch(tree)
        sys.path.insert(0, str(tree))
        import _nanovlm
        from models.language_model import LanguageModel, LanguageModelGroupedQueryAttention

        decoder = _nanovlm.model().decoder
        words = [_nanovlm.words(rows, PREFILL) for rows in ROWS]
        forms: dict[str, Callable[[Any, torch.Tensor], Callable[[Any], list[torch.Tensor]]]]
        forms = {"patched today": growing, "buffers, by hand": static}
        rows, truth, bad = [], None, False
        with torch.no_grad():
            for name, form in forms.items():
                if form is static:
                    LanguageModelGroupedQueryAttention.forward, LanguageModel.forward = attend, step
                eager = [form(decoder, w)(decoder) for w in words]
                truth = truth or eager
                f = count(decoder, [form(decoder, w) for w in words])
                compiled = list(f.outputs)
                far = max(
                    (a - b).abs().max().item()
                    for other in (eager, compiled)
                    for x, y in zip(truth, other, strict=True)
                    for a, b in zip(x, y, strict=True)
                )
                bad = bad or far > TOLERANCE
                rows.append((name, f.breaks, f.graphs, f.recompiles, f.limit_hits, f.launches, f"{far:.1e}"))
            bad = bad or not raises_when_full(decoder)
    told = f"torch {torch.__version__}. A step behind the last place of the buffers raises RuntimeError."
    put(options.document, "static cache", f"{told}\n\n{table(HEAD, rows)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
