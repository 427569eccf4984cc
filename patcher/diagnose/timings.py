"""The diagnostics that are about time: eager against compiled, whole against blocks, options of inductor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic
from patcher.harness.compare import speedup, within_noise
from patcher.harness.measured import CaseResult, Measurement, Memory, Results, Warm
from patcher.words import code

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


Figures = Mapping[str, Any]
Row = tuple[str, ...]


# ---------------------------------------------------------------------------------------------------------------------
# baseline


def baseline(results: Results, case: CaseResult, title: str) -> Diagnostic:
    """From the harness's own variants: each compiled one against eager code of the same model."""
    eager = case.variant("original", "eager")
    compiled = [case.variant("original", "compiled", mode) for mode in results.modes]
    if results.overlay:
        compiled += [case.variant("patched", "compiled", mode) for mode in results.modes]
    shown = [variant for variant in (eager, *compiled) if variant.figures]
    return Diagnostic(
        "baseline",
        title,
        case.name,
        status=eager.status,
        message=eager.message or f"backend {results.backend}; what is patched is so with all fixes",
        columns=("variant", "cold s", "warm ms", "speed", "memory MB", "memory"),
        rows=tuple(_variant_row(variant, eager) for variant in shown),
        conclusions=(
            *(line for variant in compiled for line in _against_eager(variant, eager)),
            *(line for mode in results.modes if results.overlay for line in _against_original(case, mode)),
        ),
        seconds=sum(variant.seconds for variant in (eager, *compiled)),
    )


def _variant_row(variant: Measurement, eager: Measurement) -> Row:
    own, base = variant.figures, eager.figures
    assert own is not None
    speed = size = "-"
    if base is not None and variant is not eager:
        if own.warm and base.warm:
            speed = f"{speedup(base.warm, own.warm):.2f}x" + (" (noise)" if same(base.warm, own.warm) else "")
        size = _ratio(own.memory, base.memory)
    memory = f"{own.memory.bytes / 1e6:.0f} ({own.memory.kind})" if own.memory else "-"
    return (variant.name, number(own.cold_seconds), spread(own.warm), speed, memory, size)


def _ratio(own: Memory | None, base: Memory | None) -> str:
    return f"{own.bytes / base.bytes:.2f}x" if own and base and base.bytes and own.kind == base.kind else "-"


def _against_eager(variant: Measurement, eager: Measurement) -> list[str]:
    own, base = variant.figures, eager.figures
    if own is None:
        return [f"{variant.name}: {variant.message or variant.status}."]
    if base is None or base.warm is None or own.warm is None:
        return []
    if same(base.warm, own.warm):
        return [f"{variant.name}: as fast as eager within noise ({spread(own.warm)} and {spread(base.warm)} ms)."]
    times = speedup(base.warm, own.warm)
    if times < 1:
        return [f"{variant.name}: slower than eager, {number(1 / times)} times the time of a warm pass."]
    told = f"{variant.name}: {times:.2f} times as fast as eager, warm against warm."
    if own.cold_seconds:
        once = own.cold_seconds - own.warm.median_ms / 1e3
        passes = _about(1e3 * once / (base.warm.median_ms - own.warm.median_ms))
        told += f" Its first pass costs {number(once)} s more than a warm one: made up for after {passes}."
    return [told]


def _about(passes: float) -> str:
    """With two digits that count: the times that it comes from have no more."""
    whole = max(math.ceil(passes), 1)
    rounded = round(whole, min(2 - len(str(whole)), 0))
    return f"about {rounded} pass{'' if rounded == 1 else 'es'}"


def _against_original(case: CaseResult, mode: str) -> list[str]:
    """Both compiled, as the case table compares them."""
    before, after = (case.variant(tree, "compiled", mode) for tree in ("original", "patched"))
    old, new = (variant.figures.warm if variant.figures else None for variant in (before, after))
    if old is None or new is None or math.isnan(speedup(old, new)):
        return []
    noise = " (noise)" if within_noise(old, new) else ""
    return [f"{after.name} against {before.name}: {speedup(old, new):.2f}x{noise}."]


# ---------------------------------------------------------------------------------------------------------------------
# latency, ablation


def compared(case: CaseResult, figures: Figures) -> Diagnostic:
    """Settings against the first one, which may have been measured again at last."""
    settings: list[Figures] = figures["settings"]
    told = figures["told"] or "the model has no list of two or more modules of one class"
    columns = ("setting", "first pass s", "warm ms", "speed", "graphs", "recompiles", "launches", "off eager")
    first = [s for s in settings if s["name"] == settings[0]["name"] and s["status"] == "ok"]
    return Diagnostic(
        message=told,
        columns=columns if settings else (),
        rows=tuple(_setting_row(s, first) for s in settings),
        conclusions=tuple(_of_settings(settings, first)),
    )


def _setting_row(setting: Figures, first: list[Figures]) -> Row:
    if setting["status"] != "ok":
        return (setting["name"], setting["status"], *("-" for _ in range(6)))
    counts = (setting["first"]["graphs"], setting["first"]["recompiles"], setting["settled"]["launches"])
    speed = "-"
    if first and setting not in first:
        speed = f"{_speed(setting, first):.2f}x" + ("" if _apart(setting, first) else " (noise)")
    times = number(setting["first_seconds"]), spread(warm_of(setting)), speed
    return (setting["name"], *times, *map(str, counts), number(setting["difference"]))


def _speed(setting: Figures, first: list[Figures]) -> float:
    return sum(warm_of(one).median_ms for one in first) / len(first) / warm_of(setting).median_ms


def _apart(setting: Figures, first: list[Figures]) -> bool:
    """Whether it differs from each measurement of the first setting, to the same side."""
    own, others = warm_of(setting), [warm_of(one) for one in first]
    sides = {own.median_ms < other.median_ms for other in others}
    return len(sides) == 1 and not any(same(other, own) for other in others)


def _of_settings(settings: list[Figures], first: list[Figures]) -> list[str]:
    told = [f"{s['name']}: {s['message'] or s['status']}." for s in settings if s["status"] != "ok"]
    if not first:
        return told
    others = [s for s in settings if s["status"] == "ok" and s not in first]
    apart = [s for s in others if _apart(s, first)]
    if len(others) > 1 and not any(_speed(s, first) > 1 for s in apart):
        told.append(f"None of them is faster than {first[0]['name']} beyond noise.")
    for setting in apart if len(others) > 1 else others:
        name, speed, cold = setting["name"], _speed(setting, first), setting["first_seconds"]
        if not setting["settled"]["launches"]:
            told.append(f"{name}: no compiled graph ran.")
            continue
        how = f"{speed:.2f}x as fast as {first[0]['name']}" + ("" if setting in apart else ", which is noise")
        told.append(
            f"{name}: {how}; its first pass takes {number(cold)} s instead of {number(first[0]['first_seconds'])}."
        )
        if setting.get("given") and speed > 1 and setting in apart:
            told.append(f"In code: {code(setting['given'])}")
    if len(first) == 2 and not same(*map(warm_of, first)):
        times = " and ".join(number(warm_of(one).median_ms) for one in first)
        told.append(f"The machine drifts: the default took {times} ms, at first and at last.")
    return told
