"""Which operators are written by hand: from the figures of the probe ``fusions``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic, GraphPair, Table
from patcher.diagnose.figures import code
from patcher.harness.measured import CaseResult, ProbeResult
from patcher.words import many

Figures = Mapping[str, Any]

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


def fused(case: CaseResult, probe: ProbeResult, title: str) -> Diagnostic:
    """The places that match, and the graphs before and after."""
    figures = probe.figures
    kind = "the forward of training" if figures["train"] else "inference"
    graphs = many(len(figures["graphs"]), "graph")
    return Diagnostic(
        probe.name,
        title,
        case.name,
        message=f"{len(figures['switches'])} operators are looked for in {graphs} of AOT Autograd, {kind}",
        columns=("operator", "written as", "at", "in", "times", "operators"),
        rows=tuple(_match_row(match) for match in figures["matches"]),
        conclusions=tuple(_conclusions(figures)),
        seconds=probe.seconds,
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
