"""nanoVLM's forward on sequences of several lengths; see _settings.py for what the environment chooses."""

from __future__ import annotations

from typing import Any

import _nanovlm
from _settings import DEVICE, RELEASED

device = DEVICE


def build() -> Any:
    return _nanovlm.model()


def calls() -> list[Any]:
    lengths = (128, 192, 256, 320, 512) if RELEASED else (24, 32, 40, 48, 96)
    return [_nanovlm.words_and_images(2, length) for length in lengths]
