"""The diagnostics: what the harness's probes have measured, as tables, and what follows from the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic, GraphPair, Table
from patcher.diagnose.timings import baseline, compared
from patcher.diagnose.varied import varied
from patcher.harness.measured import CaseResult, Results
from patcher.words import code, many

#: What each switch looks for is in PyTorch; "" where PyTorch has no such operator.
OPERATORS = {
    "rms-norm": "F.rms_norm",
    "layer-norm": "F.layer_norm",
    "rope": "",
    "gelu-tanh": 'F.gelu(approximate="tanh")',
    "gelu-erf": "F.gelu",
    "silu": "F.silu",
    "modulate": "",
    "attention": "F.scaled_dot_product_attention",
}
_INDUCTOR = (
    "Inductor fuses pointwise and normalising operators by itself: a rewrite gains time in eager code, and numbers that"
    " are the same eagerly and compiled."
)


def fused(case: CaseResult, figures: Figures) -> Diagnostic:
    """The places that match, and the graphs before and after."""
    kind = "the forward of training" if figures["train"] else "inference"
    graphs = many(len(figures["graphs"]), "graph")
    return Diagnostic(
        message=f"{len(figures['switches'])} operators are looked for in {graphs} of AOT Autograd, {kind}",
        columns=("operator", "written as", "at", "in", "times", "operators"),
        rows=tuple(_match_row(match) for match in figures["matches"]),
        conclusions=tuple(_conclusions(figures)),
        tables=(_graphs(figures["graphs"]),) if figures["graphs"] else (),
        graphs=tuple(_pair(case.name, graph) for graph in figures["graphs"]),
    )


def _match_row(match: Figures) -> tuple[str, ...]:
    constants = ", ".join(f"{name} {value:g}" for name, value in match["constants"].items())
    module, owner = code(match["module"]) if match["module"] else "", match["class"]
    return (
        match["switch"],
        match["how"] + (f"; {constants}" if constants else ""),
        code(match["where"]) if match["where"] else "-",
        (f"{module} ({owner})" if owner else module) if module else owner or "-",
        f"{match['times']}" + (f" in {match['graphs']} graphs" if match["graphs"] > 1 else ""),
        str(match["nodes"]),
    )


def _graphs(graphs: Iterable[Figures]) -> Table:
    columns = ("graph", "attempt", "begins at", "captured", "in one form", "after", "matches", "difference")
    rows = tuple(
        (
            str(graph["number"]),
            str(graph["attempt"]),
            code(graph["where"]) if graph["where"] else "-",
            *(str(graph[key]) for key in ("captured", "before", "after", "matches")),
            # JSON has NaN as text
            graph["message"] or ("-" if graph["difference"] is None else f"{float(graph['difference']):.1e}"),
        )
        for graph in graphs
    )
    return Table("The graphs: operators, and the largest relative difference when rewritten", columns, rows)


def _pair(case: str, graph: Figures) -> GraphPair:
    where = f", from {graph['where']}" if graph["where"] else ""
    counts = f"{graph['before']} operators before, {graph['after']} after, {many(graph['matches'], 'match', 'matches')}"
    return GraphPair(f"{case}-graph-{graph['number']}", f"{counts}{where}", graph["text_before"], graph["text_after"])


def _conclusions(figures: Figures) -> list[str]:
    told = []
    for switch in figures["switches"]:
        places = [match for match in figures["matches"] if match["switch"] == switch]
        if places:
            count, now = sum(match["times"] for match in places), OPERATORS.get(switch)
            what = f"could be {code(now)}" if now else "is no operator of PyTorch's: only a device that has one gains"
            told.append(f"{switch}: {many(count, 'match', 'matches')} at {many(len(places), 'place')}, {what}.")
    told = [*told, _INDUCTOR] if told else ["None of the operators is written by hand in what is compiled."]
    own = ", ".join(f"{switch} {count}" for switch, count in figures["own"].items() if count)
    told += [f"PyTorch's own operator already: {own}."] if own else []
    each, limit = figures["attempts"], figures["limit"]
    if each and each[-1]:
        return [*told, f"After {limit} attempts something is still compiled: fix the recompiles first."]
    return [*told, f"Attempt {len(each)} of at most {limit} is steady: nothing is compiled from there on."]


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
    tells: dict[str, Callable[[CaseResult, Figures], Diagnostic]]
    tells = {"fullgraph": partial(_fullgraph, results), "fusions": fused, "vary-batch": varied, "vary-sequence": varied}
    try:
        told = tells.get(name, compared)(case, found.figures)
    except (KeyError, TypeError, ValueError, AttributeError):  # results may come from elsewhere
        return Diagnostic(name, title, case.name, "error", "its figures are of another version of this tool")
    return replace(told, name=name, title=title, case=case.name, seconds=found.seconds)


def _fullgraph(results: Results, case: CaseResult, figures: Figures) -> Diagnostic:
    calls: list[Figures] = figures["calls"]
    rows = []
    for call in calls:
        seconds = "-" if call["seconds"] is None else f"{call['seconds']:.1f}"
        answer = "-" if _empty(call) else "yes" if call["captured"] else "no"
        rows.append((str(call["call"]), answer, str(call["launches"]), seconds, call["message"]))
    own = ", compiled as the case compiles it" if figures.get("own_compile") else ""
    return Diagnostic(
        message=f"backend {figures['backend']}{own}",
        columns=("call", "captured whole", "launches", "s", "the first thing in the way"),
        rows=tuple(rows),
        conclusions=tuple(_of_fullgraph(results, case, figures)),
    )


def _empty(call: Figures) -> bool:
    return bool(call["captured"]) and not call["launches"]


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
