"""nanoVLM's forward on batches of several sizes; see _settings.py for what the environment chooses."""

from __future__ import annotations

from typing import Any

import _nanovlm
from _settings import DEVICE, RELEASED

device = DEVICE


def build() -> Any:
    return _nanovlm.model()


def calls() -> list[Any]:
    shapes = [(rows, 256) for rows in (1, 2, 4)] if RELEASED else [(rows, 32) for rows in (1, 2, 3, 4)]
    return [_nanovlm.words_and_images(*shape) for shape in shapes]
