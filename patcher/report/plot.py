"""A picture of what the harness has measured: warm times and graph launches, before and after."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from patcher.harness.compare import Judgement
from patcher.harness.measured import Figures, Results

_SERIES = (("eager", "#9a9a9a"), ("compiled before", "#d98c3f"), ("compiled after", "#2f77b4"))
_WIDTH = 0.26  # of a bar, where the groups are 1 apart
_LABEL = 32  # characters of a case's name
_LOGARITHMIC = 20  # from this ratio on, small bars could not be seen


class PlotError(Exception):
    """No picture can be made; the message is one line."""


class _Group(NamedTuple):
    """One case in one mode: original eager, original compiled, patched compiled."""

    label: str
    figures: tuple[Figures | None, ...]


def plot(results: Results, judgement: Judgement, path: Path) -> None:
    """Write a PNG with two panels to ``path``; raises ``PlotError`` where that cannot be."""
    try:
        figure_module = importlib.import_module("matplotlib.figure")
        canvas_module = importlib.import_module("matplotlib.backends.backend_agg")  # needs no display
    except ImportError:
        raise PlotError("a plot needs matplotlib: pip install 'fix-compile[plot]'") from None
    groups = _groups(results, judgement)
    if not groups:
        raise PlotError("there is nothing to plot: no case was measured")
    figure = figure_module.Figure(figsize=(max(7.0, 2.5 + 1.3 * len(groups)), 8.0), layout="constrained")
    canvas_module.FigureCanvasAgg(figure)
    times, launches = figure.subplots(2, 1, sharex=True)
    _draw_times(times, groups)
    _draw_launches(launches, groups)
    launches.set_xticks(range(len(groups)), [group.label for group in groups])
    room = 1.0 if len(groups) == 1 else 0.6
    launches.set_xlim(-room, len(groups) - 1 + room)
    longest = max(len(line) for group in groups for line in group.label.splitlines())
    crowded = longest > max(17, 70 // len(groups))
    launches.tick_params(axis="x", labelrotation=35 if crowded else 0)
    for label in launches.get_xticklabels() if crowded else ():
        label.set(horizontalalignment="right", rotation_mode="anchor")
    handles, labels = times.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
    environment = results.environment
    figure.suptitle(f"torch {environment.torch}, {environment.device}", x=0.01, horizontalalignment="left", fontsize=11)
    try:
        figure.savefig(path, format="png", dpi=120)
    except OSError as error:
        raise PlotError(f"{path}: cannot be written: {error.strerror or error}") from None


def _groups(results: Results, judgement: Judgement) -> list[_Group]:
    """By case, then mode, as the verdicts are; a result that is not equivalent says so."""
    groups = []
    cases = (case for case in results.cases for _ in results.modes)
    for case, verdict in zip(cases, judgement.verdicts, strict=True):
        figures = (
            case.variant("original", "eager").figures,
            case.variant("original", "compiled", verdict.mode).figures,
            case.variant("patched", "compiled", verdict.mode).figures,
        )
        lines = [case.name if len(case.name) <= _LABEL else case.name[: _LABEL - 3] + "..."] + (
            [verdict.mode] if len(results.modes) > 1 else []
        )
        lines += [f"({verdict.status})"] if verdict.status != "equivalent" else []
        # a dollar sign would start a formula
        groups.append(_Group("\n".join(lines).replace("$", r"\$"), figures))
    return groups if any(figure for group in groups for figure in group.figures) else []


def _draw_times(axes: Any, groups: list[_Group]) -> None:
    medians = []
    for number, (name, colour) in enumerate(_SERIES):
        shown = [
            (place + (number - 1) * _WIDTH, figures.warm)
            for place, group in enumerate(groups)
            if (figures := group.figures[number]) and figures.warm
        ]
        places, heights = [place for place, _ in shown], [warm.median_ms for _, warm in shown]
        low = [max(0.0, warm.median_ms - warm.low_ms) for _, warm in shown]
        high = [max(0.0, warm.high_ms - warm.median_ms) for _, warm in shown]
        axes.bar(places, heights, _WIDTH, color=colour, label=name)
        axes.errorbar(places, heights, yerr=[low, high], fmt="none", ecolor="#333333", elinewidth=1, capsize=3)
        medians += heights
    if _style(axes, medians):
        axes.set_yscale("log")
        axes.set_ylim(bottom=min(median for median in medians if median > 0) / 2)
    _name_scale(axes, "ms of one warm pass")
    axes.set_title("Warm time: median, whiskers at the quartiles", fontsize=10, loc="left")


def _draw_launches(axes: Any, groups: list[_Group]) -> None:
    counts = [(place, number, group) for place, group in enumerate(groups) for number in (1, 2)]
    counted = [(place, number, figures.launches) for place, number, g in counts if (figures := g.figures[number])]
    for number in (1, 2):
        own = [(place, launches) for place, which, launches in counted if which == number]
        places = [place + (number - 1.5) * _WIDTH for place, _ in own]
        bars = axes.bar(places, [launches for _, launches in own], _WIDTH, color=_SERIES[number][1])
        axes.bar_label(bars, [str(launches) for _, launches in own], fontsize=8, padding=2)
    if _style(axes, [launches for _, _, launches in counted]):
        axes.set_yscale("symlog", linthresh=1)  # which has a place for 0
    axes.margins(y=0.12)
    axes.set_ylim(bottom=0)
    _name_scale(axes, "launches")
    axes.set_title("Compiled graphs launched in one settled pass", fontsize=10, loc="left")


def _style(axes: Any, values: Sequence[float]) -> bool:
    """Grid and frame; the answer is whether the values need a logarithmic scale."""
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    seen = [value for value in values if value > 0]
    return bool(seen) and max(seen) > _LOGARITHMIC * min(seen)


def _name_scale(axes: Any, what: str) -> None:
    linear = axes.get_yscale() == "linear"
    axes.set_ylabel(what if linear else f"{what} (log scale)")
    if not linear:
        axes.yaxis.set_major_formatter("{x:g}")
