"""What the environment chooses for the cases of real models beside this file.

``CASE_SIZE``: ``small`` (default: seconds on a CPU) or ``released`` (as large as what was published, random weights).
``CASE_DEVICE``: ``cuda`` where there is one, else ``cpu``, unless it names another.
``CASE_LAYERS``: how many repeated blocks a model has, a share of those it usually has, at least one of a kind.
``CASE_TOKENIZER``: ``stub`` (default: a plain object) or ``real`` (one of transformers, whose attributes are computed).
"""

from __future__ import annotations

import os

import torch


def _chosen(variable: str, *known: str) -> str:
    value = os.environ.get(variable) or known[0]
    if value not in known:
        raise ValueError(f"{variable} is {value!r}; known: {', '.join(known)}")
    return value


RELEASED = _chosen("CASE_SIZE", "small", "released") == "released"
REAL_TOKENIZER = _chosen("CASE_TOKENIZER", "stub", "real") == "real"
DEVICE = os.environ.get("CASE_DEVICE") or ("cuda" if torch.cuda.is_available() else "cpu")
SHARE = float(os.environ.get("CASE_LAYERS") or 1)


def layers(released: int, small: int) -> int:
    """How many blocks of a kind to build."""
    return max(1, round(SHARE * (released if RELEASED else small)))
