"""The diagnostics: what the harness's probes have measured, as tables, and what follows from the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic
from patcher.diagnose.fused import fused
from patcher.diagnose.timings import baseline, compared
from patcher.diagnose.varied import varied
from patcher.harness.measured import CaseResult, ProbeResult, Results

Figures = Mapping[str, Any]

TITLES = {
    "fullgraph": "Is each call captured whole? (fullgraph=True)",
    "baseline": "Eager against compiled, warm against warm",
    "vary-batch": "Other batch sizes",
    "vary-sequence": "Other sequence lengths",
    "latency": "Compiling the whole model against its repeated blocks",
    "ablation": "Options of inductor, one at a time",
    "fusions": "Operators that are written by hand",
}
NAMES = tuple(TITLES)
QUICK = ("fullgraph", "baseline")
USUAL = tuple(name for name in NAMES if name not in ("latency", "ablation", "fusions"))  # these compile many times over
ALONE = ("fusions",)  # when it is the only one: it compares with nothing that the harness compiles
_MADE_OF_VARIANTS = "baseline"


def probes(names: Sequence[str]) -> tuple[str, ...]:
    """Those of the diagnostics for which the harness has to run a process of their own: the plan's ``probes``."""
    return tuple(name for name in names if name != _MADE_OF_VARIANTS)


def diagnostics(results: Results, names: Sequence[str]) -> tuple[Diagnostic, ...]:
    """The named diagnostics of all cases, in the order of ``names``. One that has not been run says so."""
    return tuple(_diagnostic(results, case, name) for name in names for case in results.cases)


def _diagnostic(results: Results, case: CaseResult, name: str) -> Diagnostic:
    title = TITLES.get(name, name)
    if name == _MADE_OF_VARIANTS:
        return baseline(results, case, title)
    found = next((probe for probe in case.probes if probe.name == name), None)
    if found is None:
        return Diagnostic(name, title, case.name, "skipped", "it was not run")
    if found.status != "ok":
        return Diagnostic(name, title, case.name, found.status, found.message, seconds=found.seconds)
    try:
        return _of_probe(results, case, found, title)
    except (KeyError, TypeError, ValueError, AttributeError):  # results may come from elsewhere
        return Diagnostic(name, title, case.name, "error", "its figures are of another version of this tool")


def _of_probe(results: Results, case: CaseResult, found: ProbeResult, title: str) -> Diagnostic:
    name = found.name
    if name == "fullgraph":
        return _fullgraph(results, case, found, title)
    if name in ("vary-batch", "vary-sequence"):
        return varied(case, found, title)
    if name == "fusions":
        return fused(case, found, title)
    return compared(case, found, title)


def _fullgraph(results: Results, case: CaseResult, probe: ProbeResult, title: str) -> Diagnostic:
    calls: list[Figures] = probe.figures["calls"]
    rows = []
    for call in calls:
        seconds = "-" if call["seconds"] is None else f"{call['seconds']:.1f}"
        answer = "-" if _empty(call) else "yes" if call["captured"] else "no"
        rows.append((str(call["call"]), answer, str(call["launches"]), seconds, call["message"]))
    return Diagnostic(
        probe.name,
        title,
        case.name,
        message=_how(probe.figures),
        columns=("call", "captured whole", "launches", "s", "the first thing in the way"),
        rows=tuple(rows),
        conclusions=tuple(_of_fullgraph(results, case, probe.figures)),
        seconds=probe.seconds,
    )


def _empty(call: Figures) -> bool:
    return bool(call["captured"]) and not call["launches"]


def _how(figures: Figures) -> str:
    told = [f"backend {figures['backend']}"]
    if figures.get("own_compile"):
        told.append("compiled as the case compiles it")
    return ", ".join(told)


def _of_fullgraph(results: Results, case: CaseResult, figures: Figures) -> list[str]:
    calls: list[Figures] = figures["calls"]
    whole = [call for call in calls if call["captured"] and call["launches"]]
    empty = [call for call in calls if _empty(call)]
    failed = [call for call in calls if not call["captured"]]
    told = []
    if failed:
        reasons = dict.fromkeys(call["message"] for call in failed)
        told.append(
            f"{len(failed)} of {len(calls)} calls cannot be captured whole: {'; '.join(reasons)}."
            " `fullgraph=True` stops at the first such place; there may be more behind it."
        )
    elif len(whole) == len(calls):
        told.append("The call is captured whole." if len(calls) == 1 else f"All {len(calls)} calls are captured whole.")
    elif whole:
        told.append(f"{len(whole)} of {len(calls)} calls are captured whole.")
    if empty:
        told.append(f"{len(empty)} of {len(calls)} calls ran no compiled graph: of them this says nothing.")
    return told + (_passing(results, case, figures) if whole else [])


def _passing(results: Results, case: CaseResult, figures: Figures) -> list[str]:
    """What it does not mean when a call passes."""
    implied = figures.get("implied") or {}
    parts = {"scalars": "scalars (`.item()`)", "shapes": "shapes that depend on data (`x[mask]`)"}
    taken = [text for key, text in parts.items() if implied.get(key)]
    told = []
    if taken:
        told.append(
            f"`fullgraph=True` also captures {' and '.join(taken)}, which breaks by default:"
            " passing it does not mean that there are no breaks by default."
        )
    usual = case.variant("original", "compiled", results.modes[0]).figures
    if usual is not None:
        told.append(f"By default the same calls break {usual.counts.breaks} times, over all counted passes.")
    return told
