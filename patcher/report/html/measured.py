"""What the harness has measured: pictures, the table of cases, the variants, what did not run to its end."""

from __future__ import annotations

from patcher.harness.compare import Judgement
from patcher.harness.measured import Results
from patcher.report.harness import (
    CASE_HEAD,
    VARIANT_HEAD,
    case_rows,
    environment_lines,
    judged,
    label,
    unexercised,
    unfinished,
    variant_rows,
)
from patcher.report.html.blocks import bullets, command, fold, section, table
from patcher.report.html.charts import charts
from patcher.report.html.markup import Markup, element, join

CHARTS = "Launches and times"
_WIDTH = 300  # characters of a line


def any_compiled(results: Results | None) -> bool:
    """Whether the original has run compiled, in any case and mode, so that causes could be seen."""
    return results is not None and any(
        variant.figures is not None
        for case in results.cases
        for variant in case.variants
        if (variant.tree, variant.kind) == ("original", "compiled")
    )


def before_and_after(results: Results | None) -> Markup:
    """The pictures; nothing where nothing was measured."""
    drawn = charts(results) if results else Markup("")
    return section("charts", CHARTS, drawn) if drawn else drawn


def cases(results: Results | None, judgement: Judgement | None, *more: Markup) -> Markup:
    """The table of cases with the verdicts, and below it all variants; ``more`` goes to the end."""
    if results is None:
        return Markup("")
    variants = table("Variants", VARIANT_HEAD, variant_rows(results), "dense")
    told = [*_verdicts(results, judgement), element("h3", "Variants"), variants]
    broken = list(unfinished(results, _WIDTH))
    if broken:
        told.append(element("h3", "What did not run to its end"))
        told += [fold(title, command("\n".join(tail))) if tail else element("p", title) for title, tail in broken]
    return section("cases", "Cases", *told, fold("Environment", bullets(environment_lines(results))), *more)


def with_all_fixes(results: Results | None, judgement: Judgement | None) -> Markup:
    """The table of cases as it was before some fixes were rolled back."""
    if results is None or judgement is None:
        return Markup("")
    return fold("With all fixes in, before any was rolled back", *_verdicts(results, judgement))


def _verdicts(results: Results, judgement: Judgement | None) -> list[Markup]:
    if judgement is None:
        return []
    rows = ([_cell(i, cell) for i, cell in enumerate(row)] for row in case_rows(results, judgement))
    told = [table("Cases", CASE_HEAD, rows, "dense")]
    for _, verdict in judged(results, judgement):
        reasons = [*verdict.reasons, *(f"Note: {note}" for note in verdict.notes)]
        if reasons:
            told.append(
                join(element("p", element("strong", f"{label(results, verdict)}: {verdict.status}")), bullets(reasons))
            )
    return [*told, *(element("p", line) for line in unexercised(judgement, _WIDTH))]


def _cell(column: int, text: str) -> Markup:
    if text.startswith("NO"):
        return element("strong", text, class_="bad")
    return join(text.replace(" -> ", " → ") if column else text)
