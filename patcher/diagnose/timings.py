"""The diagnostics that are about time: eager against compiled, whole against blocks, options of inductor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic
from patcher.diagnose.figures import code, number, same, spread, warm_of
from patcher.harness.compare import speedup, within_noise
from patcher.harness.measured import CaseResult, Measurement, Memory, ProbeResult, Results, Warm

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
# latency


def latency(case: CaseResult, probe: ProbeResult, title: str) -> Diagnostic:
    """Whole model against blocks."""
    figures = probe.figures
    blocks = ", ".join(f"{b['count']} x {b['class']} in {b['path'] or 'the model'}" for b in figures["blocks"])
    if not blocks:
        told = "the model has no list of two or more modules of one class"
        return Diagnostic(probe.name, title, case.name, message=told, seconds=probe.seconds)
    names = {"whole": "whole model", "blocks": "block by block"}
    return Diagnostic(
        probe.name,
        title,
        case.name,
        message=f"{blocks}; backend {figures['backend']}",
        columns=(
            "compiled",
            "first pass s",
            "warm ms",
            "graphs",
            "breaks",
            "recompiles",
            "launches",
            f"batch of {figures['size']}: s" if figures.get("size") else "another batch: s",
            "its recompiles",
        ),
        rows=tuple(_latency_row(names[s["name"]], s) for s in figures["settings"]),
        conclusions=tuple(_of_latency(figures)),
        seconds=probe.seconds,
    )


def _latency_row(name: str, setting: Figures) -> Row:
    if setting["status"] != "ok":
        return (name, setting["status"], *("-" for _ in range(7)))
    first, another = setting["first"], setting.get("another")
    counts = [str(first[key]) for key in ("graphs", "breaks", "recompiles")]
    later = (number(another["seconds"]), str(another["recompiles"])) if another else ("-", "-")
    warm = spread(warm_of(setting))
    return (name, number(setting["first_seconds"]), warm, *counts, str(setting["settled"]["launches"]), *later)


def _of_latency(figures: Figures) -> list[str]:
    failed = [s for s in figures["settings"] if s["status"] != "ok"]
    if failed:
        return [f"{s['name']}: {s['message'] or s['status']}." for s in failed]
    whole, blocks = figures["settings"]
    if not blocks["settled"]["launches"]:
        return ["No compiled block ran: the model does not call these blocks as modules."]
    slow, fast = whole["first_seconds"], blocks["first_seconds"]
    told = f"Block by block, the first pass takes {number(fast)} s instead of {number(slow)} s"
    told += f" ({slow / fast:.1f} times quicker)" if fast < slow else ""
    lines = [f"{told}; {_warm_difference(warm_of(whole), warm_of(blocks))}."]
    if "another" in whole and "another" in blocks:
        one, other = whole["another"], blocks["another"]
        lines.append(
            f"A batch of {figures['size']} afterwards takes {number(other['seconds'])} s block by block (recompiles:"
            f" {other['recompiles']}), {number(one['seconds'])} s as a whole (recompiles: {one['recompiles']})."
        )
    if blocks["first"]["limit_hits"]:
        lines.append(f"Block by block, the recompile limit was hit {blocks['first']['limit_hits']} times.")
    return lines


def _warm_difference(whole: Warm, blocks: Warm) -> str:
    both = f"{number(blocks.median_ms)} ms against {number(whole.median_ms)} ms"
    return f"a warm pass takes {both}" + (", which is no difference beyond noise" if same(whole, blocks) else "")


# ---------------------------------------------------------------------------------------------------------------------
# ablation


def ablation(case: CaseResult, probe: ProbeResult, title: str) -> Diagnostic:
    """Each option against the defaults, which were measured first and last."""
    settings: list[Figures] = probe.figures["settings"]
    defaults = [warm_of(s) for s in settings if s["name"] == "default" and s["status"] == "ok"]
    return Diagnostic(
        probe.name,
        title,
        case.name,
        message=f"mode {probe.figures['mode']}",
        columns=("option", "first pass s", "warm ms", "speed", "max difference to eager"),
        rows=tuple(_option_row(s, defaults) for s in settings),
        conclusions=tuple(_of_ablation(probe.figures, settings, defaults)),
        seconds=probe.seconds,
    )


def _named(setting: Figures) -> str:
    return "default" if setting["name"] == "default" else f"{setting['name']}={setting['value']}"


def _option_row(setting: Figures, defaults: list[Warm]) -> Row:
    if setting["status"] != "ok":
        return (_named(setting), setting["status"], "-", "-", "-")
    warm = warm_of(setting)
    speed = "-"
    if setting["name"] != "default" and defaults:
        speed = f"{_middle(defaults) / warm.median_ms:.2f}x" + ("" if _apart(warm, defaults) else " (noise)")
    first = number(setting["first_seconds"])
    return (_named(setting), first, spread(warm), speed, number(setting["difference"]))


def _middle(defaults: list[Warm]) -> float:
    return sum(warm.median_ms for warm in defaults) / len(defaults)


def _apart(warm: Warm, defaults: list[Warm]) -> bool:
    """Whether it differs from each measurement of the defaults, to the same side."""
    sides = {warm.median_ms < default.median_ms for default in defaults}
    return len(sides) == 1 and not any(same(default, warm) for default in defaults)


def _of_ablation(figures: Figures, settings: Iterable[Figures], defaults: list[Warm]) -> list[str]:
    told = []
    options = [s for s in settings if s["name"] != "default"]
    for setting in (s for s in settings if s["status"] != "ok"):
        told.append(f"{code(_named(setting))}: {setting['message'] or setting['status']}.")
    if not defaults:
        return [*told, "Without a measurement of the defaults there is nothing to compare with."]
    apart = [s for s in options if s["status"] == "ok" and _apart(warm_of(s), defaults)]
    better = [s for s in apart if warm_of(s).median_ms < _middle(defaults)]
    for setting in better:
        given = f'torch.compile(model, options={{"{setting["name"]}": {setting["value"]}}})'
        if figures["mode"] != "default":  # torch.compile takes a mode or options, not both
            given = f"torch._inductor.config.{setting['name']} = {setting['value']}"
        told.append(
            f"{code(_named(setting))} is {_middle(defaults) / warm_of(setting).median_ms:.2f}x as fast as the default,"
            f" beyond noise: {code(given)}. Its first pass takes {number(setting['first_seconds'])} s."
        )
    if not better and any(s["status"] == "ok" for s in options):
        told.append("None of the options is faster than the default beyond noise.")
    slower = [code(_named(s)) for s in apart if s not in better]
    if slower:
        told.append(f"Slower beyond noise: {', '.join(slower)}.")
    if len(defaults) == 2 and not same(*defaults):
        told.append(
            f"The machine drifts: the default itself took {number(defaults[0].median_ms)} ms at first and"
            f" {number(defaults[1].median_ms)} ms at last."
        )
    if figures["unknown"]:
        told.append(f"This torch does not know {', '.join(map(code, figures['unknown']))}.")
    if figures["fixed"]:
        told.append(f"The mode itself decides about {', '.join(map(code, figures['fixed']))}.")
    return told
