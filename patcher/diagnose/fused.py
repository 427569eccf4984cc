"""Which operators are written by hand, and what that costs: from the figures of the probe ``fusions``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from patcher.diagnose.diagnosis import Diagnostic, GraphPair, Table
from patcher.diagnose.figures import code
from patcher.harness.measured import CaseResult, ProbeResult

Figures = Mapping[str, Any]
Row = tuple[str, ...]

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
_MOST = 3  # differences of a near miss that are told
_MISSES = 40  # near misses that are shown


def fused(case: CaseResult, probe: ProbeResult, title: str) -> Diagnostic:
    """The places that match, near misses, the graphs before and after, the scopes, and inductor's own fusions."""
    figures = probe.figures
    matches: list[Figures] = figures["matches"]
    more = (_misses(figures["misses"]), _graphs(figures["graphs"]), _scopes(figures["scopes"]))
    return Diagnostic(
        probe.name,
        title,
        case.name,
        message=_message(figures),
        columns=("operator", "written as", "at", "in", "times", "operators", "inductor"),
        rows=tuple(_match_row(match, figures) for match in matches),
        conclusions=tuple(_conclusions(figures)),
        seconds=probe.seconds,
        tables=tuple(table for table in more if table.rows),
        graphs=tuple(_pair(case.name, graph) for graph in figures["graphs"]),
    )


def _message(figures: Figures) -> str:
    graphs, switches = len(figures["graphs"]), len(figures["switches"])
    kind = "forward, and forward with backward" if figures["train"] else "inference"
    return f"{switches} patterns are looked for in {_many(graphs, 'graph')} of AOT Autograd, {kind}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "es" if what.endswith("ch") else "s")


def _match_row(match: Figures, figures: Figures) -> Row:
    constants = ", ".join(f"{name} {value:g}" for name, value in match["constants"].items())
    return (
        match["switch"],
        match["how"] + (f"; {constants}" if constants else ""),
        code(match["where"]) if match["where"] else "-",
        _module(match),
        _times(match, figures),
        str(match["nodes"]),
        _kernels(match),
    )


def _module(row: Figures) -> str:
    if not row["module"]:
        return row["class"] or "-"
    return code(row["module"]) + (f" ({row['class']})" if row["class"] else "")


def _times(row: Figures, figures: Figures) -> str:
    inside = f" in {row['graphs']} graphs" if row["graphs"] > 1 else ""
    joint = f", {row['joint']} with backward" if figures["train"] and "joint" in row else ""
    return f"{row['times']}{inside}{joint}"


def _kernels(row: Figures) -> str:
    """How many kernels of inductor's hold the lines of one place."""
    found = row["kernels"]
    if found is None:
        return "-"
    each, extern = found["generated"] / row["times"], found["extern"] / row["times"]
    told = f"{each:.3g} kernel{'' if each == 1 else 's'} each"
    return told + (f", {extern:.3g} call{'' if extern == 1 else 's'}" if extern else "")


def _misses(misses: Sequence[Figures]) -> Table:
    rows = []
    for miss in sorted(misses, key=lambda miss: -miss["matched"] / miss["of"])[:_MISSES]:
        differs = [str(told) for told in miss["differs"]]
        more = f"; and {len(differs) - _MOST} more" if len(differs) > _MOST else ""
        rows.append(
            (
                miss["switch"],
                code(miss["where"]) if miss["where"] else "-",
                _module(miss),
                f"{miss['times']}" + (f" in {miss['graphs']} graphs" if miss["graphs"] > 1 else ""),
                f"{miss['matched']} of {miss['of']}",
                "; ".join(differs[:_MOST]) + more,
            )
        )
    title = "Almost a match" + (f" ({_MISSES} of {len(misses)})" if len(misses) > _MISSES else "")
    return Table(title, ("operator", "at", "in", "times", "fits", "what differs, the nearest first"), tuple(rows))


def _graphs(graphs: Iterable[Figures]) -> Table:
    columns = ("graph", "attempt", "begins at", "captured", "in one form", "after", "matches", "difference")
    rows = tuple(
        (
            str(graph["number"]),
            str(graph["attempt"]),
            code(graph["where"]) if graph["where"] else "-",
            *(str(graph[key]) for key in ("captured", "before", "after", "matches")),
            graph["message"] or ("-" if graph["difference"] is None else f"{_float(graph['difference']):.1e}"),
        )
        for graph in graphs
    )
    return Table("The graphs: operators, and the largest relative difference when rewritten", columns, rows)


def _float(value: Any) -> float:
    return float(value)  # JSON has NaN as text


def _scopes(scopes: Sequence[Figures]) -> Table:
    rows = tuple(
        (
            _scope(scope),
            *(
                ("-", "-", "-", "-", scope["message"] or scope["status"])
                if scope["status"] != "ok"
                else (
                    str(scope["graphs"]),
                    ", ".join(map(str, scope["attempts"])),
                    str(scope["steady"] or "none"),
                    str(scope["operators"]),
                    ", ".join(f"{name} {count}" for name, count in scope["matches"].items()) or "none",
                )
            ),
        )
        for scope in scopes
    )
    columns = ("compiled", "graphs", "in each attempt", "steady at", "operators", "matches")
    return Table("What is compiled", columns, rows)


def _scope(scope: Figures) -> str:
    names = ", ".join(code(name) for name in scope.get("classes", ()))
    return {
        "module": "the model",
        "class": f"the class {names}" if names else "a class",
        "forward": f"`forward` of {names}" if names else "`forward`",
    }[scope["name"]]


def _pair(case: str, graph: Figures) -> GraphPair:
    where = f", from {graph['where']}" if graph["where"] else ""
    counts = f"{graph['before']} operators before, {graph['after']} after, {_many(graph['matches'], 'match')}"
    return GraphPair(f"{case}-graph-{graph['number']}", f"{counts}{where}", graph["text_before"], graph["text_after"])


# ---------------------------------------------------------------------------------------------------------------------
# What follows.


def _conclusions(figures: Figures) -> list[str]:
    told = [*_found(figures), *_already(figures)]
    told += _by_inductor(figures)
    if figures["train"]:
        told += _training(figures)
    return [*told, *_steady(figures)]


def _found(figures: Figures) -> list[str]:
    matches: list[Figures] = figures["matches"]
    told = []
    for switch in figures["switches"]:
        places = [match for match in matches if match["switch"] == switch]
        if places:
            count = sum(match["times"] for match in places)
            now = OPERATORS.get(switch)
            what = f"could be {code(now)}" if now else "is no operator of PyTorch's: only a device that has one gains"
            told.append(f"{switch}: {_many(count, 'match')} at {_many(len(places), 'place')}, {what}.")
    return told or ["None of the operators is written by hand in what is compiled."]


def _already(figures: Figures) -> list[str]:
    own = ", ".join(f"{switch} {count}" for switch, count in figures["own"].items() if count)
    return [f"PyTorch's own operator already: {own}."] if own else []


def _by_inductor(figures: Figures) -> list[str]:
    inductor = figures["inductor"]
    if inductor["status"] != "ok":
        return [f"What inductor makes of it is not known: {inductor['message'] or inductor['status']}."]
    graphs: list[Figures] = inductor["graphs"]
    kernels, extern = (sum(graph[key] for graph in graphs) for key in ("kernels", "extern"))
    told = [
        f"By itself inductor generates {_many(kernels, 'kernel')} and {_many(extern, 'call')} of libraries in"
        f" {_many(len(graphs), 'graph')}; it has put {inductor['fused_attention']} attentions into one operator"
        " (`fuse_attention`)."
    ]
    one = [
        match["switch"]
        for match in figures["matches"]
        if match["kernels"] and match["kernels"]["generated"] <= match["times"]
    ]
    if one:
        names = ", ".join(dict.fromkeys(one))
        told.append(
            f"In one kernel each already when inductor compiles: {names}. A rewrite gains nothing there but eager time,"
            " and numbers that are the same eagerly and compiled."
        )
    return told


def _training(figures: Figures) -> list[str]:
    known: list[str] = figures["in_training"]
    without = [switch for switch in figures["switches"] if switch not in known]
    told = [
        f"With backward, patterns exist for {', '.join(known)}; not for {', '.join(without)}: PyTorch has none of"
        " that name with its own backward, or inductor's patterns are for it (attention)."
    ]
    never = {match["switch"] for match in figures["matches"] if match["switch"] in known and not match["joint"]}
    if never:
        told.append(
            f"Found in the forward, and not with backward: {', '.join(sorted(never))}. Gradients that meet in a tensor"
            " are added in another order than the pattern's; a rewrite of the source does not depend on it."
        )
    return told


def _steady(figures: Figures) -> list[str]:
    whole = figures["scopes"][0]
    limit = figures["limit"]
    if whole["steady"] is None:
        return [f"After {limit} attempts something is still compiled: warm up longer, or fix the recompiles first."]
    return [f"Attempt {whole['steady']} of at most {limit} is steady: nothing is compiled from there on."]
