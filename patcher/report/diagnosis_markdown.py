"""The optimisation report as Markdown, to read in a terminal and to keep beside the code."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.diagnose.diagnosis import CATEGORIES, SEVERITIES, Cause, Diagnosis
from patcher.report.markdown.blocks import Blocks, block, inline, page, points, prose, sentence, table
from patcher.report.markdown.causes import cause_sections, stays, to_do
from patcher.report.markdown.measured import earned, performance
from patcher.report.markdown.remarks import configuration, experiments, remarks
from patcher.report.recommending import commands, ran_compiled, verdict
from patcher.report.sections import READING, TITLES


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
