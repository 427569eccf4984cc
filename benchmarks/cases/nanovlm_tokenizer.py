"""nanoVLM's forward with a tokenizer of the ``tokenizers`` library; _settings.py says what the environment chooses."""

from __future__ import annotations

from typing import Any

import _nanovlm
from _settings import DEVICE

device = DEVICE


def build() -> Any:
    return _nanovlm.model(real_tokenizer=True)


def calls() -> list[Any]:
    return [_nanovlm.words_and_images(rows, 32) for rows in (1, 2, 3, 4)]
