"""nanoVLM's forward with lists of images, as its collator hands them over: a list for each row, of one image each.

The rows differ from call to call, and with them the number of images; see _settings.py for what the environment
chooses.
"""

from __future__ import annotations

from typing import Any

import _nanovlm
import torch
from _settings import DEVICE

device = DEVICE


def build() -> Any:
    return _nanovlm.model()


def compile(model: Any, **options: Any) -> Any:
    """The core alone where ``forward`` is split (FC702), and its preparation of lists eager; else the whole."""
    core = getattr(model, "_forward_core", None)
    if core is None:
        return torch.compile(model, **options)
    model._forward_core = torch.compile(core, **options)
    return model


def calls() -> list[Any]:
    both = [_nanovlm.words_and_images(rows, 32) for rows in (2, 3, 4, 5)]
    return [(words, [[image[None]] for image in images]) for words, images in both]
