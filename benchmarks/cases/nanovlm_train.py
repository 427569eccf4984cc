"""nanoVLM's training step, with its own loss; see _settings.py for what the environment chooses.

At the released size it computes in bfloat16 the way that nanoVLM's train.py does: under autocast, with weights in
float32. (Converted as a whole, the model does not run: its rotary embedding stays in float32.)
"""

from __future__ import annotations

from functools import partial
from typing import Any

import _nanovlm
import torch
from _settings import DEVICE, RELEASED

device = DEVICE
train = True
tolerance = 0.02 if RELEASED else 1e-3  # bfloat16 leaves logits 0.008 off those in float32


def build() -> Any:
    return _nanovlm.model().train()


def calls() -> list[Any]:
    if RELEASED:
        words, images = _nanovlm.words_and_images(4, 256)
        return [partial(mixed, words.to(DEVICE), images.to(DEVICE))]
    both = [_nanovlm.words_and_images(rows, 32) for rows in (2, 3)]
    return [(words, images, None, words) for words, images in both]


def loss(output: Any) -> torch.Tensor:
    return output[1]


def mixed(words: torch.Tensor, images: torch.Tensor, model: Any) -> Any:
    """A forward under autocast: what is worth keeping of 4 x 256 x 49218 logits, and the loss."""
    images = images.to(next(model.parameters()))  # in float64 when the model is
    with torch.autocast(images.device.type, dtype=torch.bfloat16):
        logits, own_loss = model(words, images, None, words)
    return _summary(logits.detach()), own_loss


def _summary(logits: torch.Tensor) -> dict[str, torch.Tensor]:
    """The logits of the last 8 places (rows, 8, ids); the mean and the largest magnitude at all (rows, words)."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    return {
        "last": logits[:, -8:].to(wide, copy=True),
        "mean": logits.mean(dim=-1, dtype=wide),
        "largest": logits.abs().amax(dim=-1).to(wide),
    }
