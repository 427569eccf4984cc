"""Figures of the probes as values and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patcher.harness.compare import within_noise
from patcher.harness.measured import Warm

_SHARE = 0.05  # a smaller difference of medians is none: over few passes, quartiles are close together by chance


def warm_of(setting: Mapping[str, Any]) -> Warm:
    """The warm times of a setting that is ok."""
    warm = setting["warm"]
    return Warm(warm["median_ms"], warm["low_ms"], warm["high_ms"], warm["min_ms"], warm["passes"])


def same(one: Warm, other: Warm) -> bool:
    """Whether a difference of two warm times says nothing."""
    larger = max(one.median_ms, other.median_ms)
    return within_noise(one, other) or abs(one.median_ms - other.median_ms) <= _SHARE * larger


def number(value: float | str | None) -> str:
    """Three digits that count; "-" for what is not known. JSON spells NaN and the infinities."""
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(warm: Warm | None) -> str:
    """``36.2 [35.8-36.5]``."""
    return f"{number(warm.median_ms)} [{number(warm.low_ms)}-{number(warm.high_ms)}]" if warm else "-"


def code(text: str) -> str:
    """Between backticks, as many as it takes."""
    marks = "`" if "`" not in text else "``"
    return f"{marks}{text}{marks}"
