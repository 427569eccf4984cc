"""What an operator that is written out by hand costs and loses: what ``benchmarks/fusions.py`` has found by running.

``fusions.json`` beside this file is made by that program, never by hand: form -> dtype -> what was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_READ = json.loads(Path(__file__).with_name("fusions.json").read_text(encoding="utf-8"))
#: Form -> dtype -> errors, ratios of time by hand by PyTorch's own, and whether the bits are the same.
MEASURED: Mapping[str, Mapping[str, Mapping[str, float | bool]]] = _READ["forms"]
TORCH: str = _READ["torch"]
_ON = f"CPU, torch {TORCH}"


def rounding(form: str) -> str:
    """How the results of the two ways differ, and which of them is closer to float64."""
    by_dtype = MEASURED[form]
    if all(told["same outputs"] and told["same gradients"] for told in by_dtype.values()):
        return f"with `pow(2)` and `rsqrt`, the same to the last bit ({_ON}); on a GPU, or written otherwise, not quite"
    told = by_dtype["bfloat16"]
    hand, own = told["error by hand"], told["error of PyTorch's own"]
    which = "closer to the truth" if own < hand else "no closer to the truth"
    return f"the last bits differ; in bfloat16 {which}: {own:.1e} instead of {hand:.1e} off float64 ({_ON})"


def times(form: str) -> str:
    """How many times as long the form by hand takes, forward, eagerly."""
    return ", ".join(f"{told['forward']:g} times in {dtype}" for dtype, told in MEASURED[form].items()) + f" ({_ON})"


def presumed(form: str) -> str:
    """What a fix takes for granted that puts PyTorch's own in the place of that form."""
    return f"no autocast, under which the dtypes of the two may differ; {rounding(form)}"
