"""nanoVLM's language model in its own ``generate``, with the decoder compiled; see _settings.py for what can be chosen.

The hidden state is fed back, so that what comes out are floats. The loop itself runs eagerly.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import _nanovlm
import torch
from _settings import DEVICE, RELEASED

device = DEVICE
ROWS = 2
PREFILL, STEPS = (64, 32) if RELEASED else (16, 12)


def build() -> Any:
    return _nanovlm.model().decoder


def compile(model: Any, **options: Any) -> Any:
    """``forward`` alone: ``generate`` of a module that is compiled as a whole would call it as it is."""
    model.forward = torch.compile(model.forward, **options)
    return model


def calls() -> list[Any]:
    words = _nanovlm.words(ROWS, PREFILL).to(DEVICE)
    return [partial(generate, words), partial(generate, words)]


def generate(words: torch.Tensor, decoder: Any) -> torch.Tensor:
    """The embeddings that were given and the hidden states of all steps, (rows, words + steps, width)."""
    return decoder.generate(decoder.token_embedding(words), max_new_tokens=STEPS)
