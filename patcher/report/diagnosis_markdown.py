"""The optimisation report as Markdown, to read in a terminal and to keep beside the code."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.diagnose.diagnosis import CATEGORIES, SEVERITIES, Cause, CompileSite, Diagnosis, Diagnostic, Remark
from patcher.report.markdown.blocks import (
    NONE,
    Blocks,
    block,
    cells,
    code,
    decimal,
    inline,
    page,
    points,
    prose,
    sentence,
    table,
)
from patcher.report.markdown.causes import cause_sections, stays, to_do
from patcher.report.markdown.measured import earned, performance
from patcher.report.recommending import GRAPHS, READING, TITLES, commands, ran_compiled, verdict


def configuration(sites: Sequence[CompileSite]) -> Blocks:
    """Where and how the repository compiles."""
    for site in sites:
        yield f"### {code(site.where)}"
        yield block(site.call, "python")
        given = (f"{code(name)}: {code(value)}" if name else code(value) for name, value in site.arguments)
        yield points(f"Compiled: {code(site.target) or NONE}", *given, *site.remarks)


def experiments(diagnostics: Sequence[Diagnostic]) -> Blocks:
    """The diagnostics, a table each."""
    for diagnostic in diagnostics:
        yield f"### {inline(diagnostic.title)}: {inline(diagnostic.case)}"
        ended = "" if diagnostic.status == "ok" else f"It did not end well ({diagnostic.status})"
        if told := ": ".join(filter(None, (ended, diagnostic.message))):
            yield prose(f"{told}.")
        if diagnostic.rows:
            yield table(cells(diagnostic.columns), map(cells, diagnostic.rows))
        yield points(*diagnostic.conclusions)
        for more in diagnostic.tables:
            yield f"#### {inline(more.title)}"
            yield table(cells(more.columns), map(cells, more.rows))
        yield prose(GRAPHS) if diagnostic.graphs else ""
        yield f"`{inline(diagnostic.option)}`, {decimal(diagnostic.seconds)} s"


def remarks(found: Sequence[Remark]) -> Blocks:
    """Places that are no causes, in one table."""
    if found:
        columns = ("at", "what", "why", "code") if any(one.code for one in found) else ("at", "what", "why")
        rows = ((code(one.where), inline(one.what), inline(one.why), code(one.code) or NONE) for one in found)
        yield table(columns, (row[: len(columns)] for row in rows))


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """All of it, a section each; what there is nothing of is left out."""
    problems = points(*diagnosis.problems)
    cases = diagnosis.results.cases if diagnosis.results else ()
    if cases and all(case.variant("original", "eager").status == "case-error" for case in cases):
        again = "Your case fails before anything is compiled. Fix it, then run this again:"
        told: Blocks = iter((f"## {TITLES['problems']}", problems, again, block(diagnosis.command, "bash")))
        return page(told)
    sections: dict[str, Blocks] = {
        "problems": iter([problems] if problems else []),
        "summary": _summary(diagnosis),
        "configuration": configuration(diagnosis.sites),
        "causes": cause_sections(diagnosis.causes),
        "stays": stays(diagnosis),
        "next": to_do(diagnosis),
        "proof": earned(diagnosis),
        "performance": performance(diagnosis),
        "diagnostics": experiments(diagnosis.diagnostics),
        "trace": iter([prose(diagnosis.trace)] if diagnosis.trace else []),
        "static-only": remarks(diagnosis.static_only),
        "fine": remarks(diagnosis.fine),
        "commands": iter([block(commands(diagnosis), "bash")]),
        "reading": _reading(diagnosis),
    }
    whole = list(_opening(diagnosis))
    for name, title in TITLES.items():
        if inside := list(sections[name]):
            whole += [f"## {title}", *inside]
    return page(whole)


def _opening(diagnosis: Diagnosis) -> Blocks:
    proven = ", each fix tried" if diagnosis.proof else ""
    other = "the source and a log" if diagnosis.causes and diagnosis.results is None else "the source alone"
    mode = f"Mode: {'the source and a run of it' if ran_compiled(diagnosis.results) else other}{proven}"
    yield f"# torch.compile: {inline(diagnosis.title)}"
    yield points(f"Date: {diagnosis.started}", mode, *diagnosis.facts)
    yield block(diagnosis.command, "bash") if diagnosis.command else ""


def _summary(diagnosis: Diagnosis) -> Blocks:
    causes = diagnosis.causes
    if diagnosis.proof is not None:
        yield points(*map(sentence, diagnosis.proof.ending.splitlines()))
    if causes:
        rows = [(category, *_counted([c for c in causes if c.category == category])) for category in CATEGORIES]
        total = tuple(f"**{cell}**" for cell in ("total", *_counted(causes)))
        yield table(("category", *SEVERITIES, "total"), [*rows, total])
    yield prose(verdict(diagnosis))


def _counted(causes: Sequence[Cause]) -> tuple[str, ...]:
    each = (sum(cause.severity == severity for cause in causes) for severity in SEVERITIES)
    return (*(str(number) for number in each), str(len(causes)))


def _reading(diagnosis: Diagnosis) -> Blocks:
    if ran_compiled(diagnosis.results):
        yield [line for term, told in READING for line in prose(told, f"- **{term}**. ", "  ")]
