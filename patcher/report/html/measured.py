"""What the harness has measured: pictures, the table of cases, the variants, what did not run to its end."""

from __future__ import annotations

from patcher.diagnose.diagnosis import Diagnosis
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
from patcher.report.html.markup import Child, Markup, element, join
from patcher.report.recommending import compared

_WIDTH = 300  # characters of a line


def performance(diagnosis: Diagnosis) -> Markup:
    """Pictures, the table of cases with the verdicts, all variants. After a proof, the tree as it ended is shown."""
    found, results, judgement = diagnosis.proof, diagnosis.results, diagnosis.judgement
    against, earlier = compared(None), Markup("")
    if results is None:
        return Markup("")
    if found and found.results:
        if judgement:
            earlier = fold(_sentence(against), *_verdicts(results, judgement))
        results, judgement, against = found.results, found.judgement, compared(found)
    told: list[Child] = [element("h3", _sentence(against))] if judgement else []
    told += [charts(results), *_verdicts(results, judgement)]
    told += [element("h3", "Variants"), table("Variants", VARIANT_HEAD, variant_rows(results), "dense")]
    broken = list(unfinished(results, _WIDTH))
    if broken:
        told.append(element("h3", "What did not run to its end"))
        told += [fold(title, command("\n".join(tail))) if tail else element("p", title) for title, tail in broken]
    return section("performance", *told, fold("Environment", bullets(environment_lines(results))), earlier)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


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
