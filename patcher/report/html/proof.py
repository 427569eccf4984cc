"""What a search has done: each fix kept or rolled back, and what the tree costs now."""

from __future__ import annotations

from collections.abc import Callable

from patcher.diagnose.diagnosis import Proof, Totals, Tried
from patcher.report.html.blocks import command, fold, section, table, terms
from patcher.report.html.diffs import side_by_side
from patcher.report.html.markup import Markup, element, join, place, prose

_COUNTS: tuple[tuple[str, Callable[[Totals], int]], ...] = (
    ("breaks", lambda totals: totals.breaks),
    ("recompiles", lambda totals: totals.recompiles),
    ("launches", lambda totals: totals.launches),
    ("dropped frames", lambda totals: totals.dropped_frames),
    ("recompile-limit hits", lambda totals: totals.limit_hits),
    ("CUDA-graph skips", lambda totals: totals.cudagraph_skips),
)
_ALWAYS = 3  # of the counts; the others are shown when one of them is not 0
# all others are rolled back
_FATES: dict[str, str] = {"kept": "kept", "not tried": "not tried"}
_HEAD = ("Outcome", "Fix", "Where", "Why")


def proof_section(proof: Proof | None) -> Markup:
    """Nothing when there was no proof."""
    if proof is None:
        return Markup("")
    counted = f"{sum(tried.outcome == 'kept' for tried in proof.tried)} of {len(proof.tried)} kept"
    told = f"{counted}, {proof.measurements} measurements. Figures: original → what was kept."
    each = table("What became of each fix", _HEAD, map(_row, proof.tried), "list")
    restore = join(element("h3", "To undo it"), command(proof.restore)) if proof.restore else ""
    return section(
        "proof",
        _totals(proof.before, proof.after),
        element("p", told),
        join(element("h3", "Each fix"), each) if proof.tried else "",
        (_diff(tried) for tried in proof.tried if tried.diff),
        restore,
    )


def _totals(before: Totals | None, after: Totals | None) -> Markup:
    pairs = []
    for number, (name, read) in enumerate(_COUNTS):
        was, now = read(before) if before else None, read(after) if after else None
        if number < _ALWAYS or was or now:
            pairs.append((name, " → ".join("-" if figure is None else str(figure) for figure in (was, now))))
    if before and before.warm_ms is not None:
        pairs.append(("warm ms", f"{_ms(before)} → {_ms(after)}"))
    return terms(pairs, "figures")


def _ms(totals: Totals | None) -> str:
    return "-" if totals is None or totals.warm_ms is None else f"{totals.warm_ms:.1f}"


def _row(tried: Tried) -> list[Markup]:
    return [
        _outcome(tried),
        _lines(tried.fixes),
        element("span", (element("span", place(where), class_="row") for where in tried.where)),
        element("span", prose(tried.reason), class_="wide"),
    ]


def _outcome(tried: Tried) -> Markup:
    fate: str = _FATES.get(tried.outcome, "rolled back")
    told = element("span", fate, class_=f"mark {'kept' if fate == 'kept' else 'dropped'}")
    return told if tried.outcome in _FATES else join(told, element("span", tried.outcome, class_="row"))


def _lines(texts: tuple[str, ...]) -> Markup:
    return join(element("span", text, class_="row") for text in texts)


def _diff(tried: Tried) -> Markup:
    fate = _FATES.get(tried.outcome, "rolled back")
    return fold(f"Diff of {', '.join(tried.fixes)}: {fate}", side_by_side(tried.diff))
