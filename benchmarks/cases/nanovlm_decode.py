"""nanoVLM's language model, step by step through its cache; see _settings.py for what the environment chooses.

The last hidden state is the next input, as in ``LanguageModel.generate``: unlike chosen words, it moves by no more than
the outputs do.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import _nanovlm
import torch
from _settings import DEVICE, RELEASED
from torch.utils._pytree import tree_map_only

device = DEVICE
ROWS = 2
PREFILL, STEPS = (64, 32) if RELEASED else (16, 12)


def build() -> Any:
    return _nanovlm.model().decoder


def calls() -> list[Any]:
    words = _nanovlm.words(ROWS, PREFILL).to(DEVICE)
    return [partial(generate, words), partial(generate, words)]


def generate(words: torch.Tensor, decoder: Any) -> dict[str, Any]:
    """Hidden states of the prefill (rows, words, width) and of each step (rows, 1, width); the last block's cache."""
    states, cache = _step(decoder, decoder.token_embedding(words), None, 0)
    hidden = [states]
    for place in range(PREFILL, PREFILL + STEPS):
        states, cache = _step(decoder, states[:, -1:, :], cache, place)
        hidden.append(states)
    return {"hidden": hidden, "cache": cache[-1]}


def _step(decoder: Any, states: torch.Tensor, cache: Any, place: int) -> Any:
    """One call of the decoder; CUDA graphs write the next step's outputs where they wrote these, hence the copies."""
    torch.compiler.cudagraph_mark_step_begin()
    output = decoder(states, attention_mask=None, kv_cache=cache, start_pos=place)
    return tree_map_only(torch.Tensor, torch.clone, output)
