"""The optimisation report as Markdown, to read in a terminal and to keep beside the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patcher.diagnose.diagnosis import CATEGORIES, SEVERITIES, Cause, Diagnosis
from patcher.report.markdown.blocks import block, inline, point, prose, sentence, table
from patcher.report.markdown.causes import cause_sections, stays, to_do
from patcher.report.markdown.measured import earned, performance
from patcher.report.markdown.remarks import configuration, experiments, remarks, trace
from patcher.report.reading import READING
from patcher.report.recommending import commands
from patcher.report.sections import TITLES
from patcher.report.verdict import ran_compiled, verdict


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """All of it, a section each; what there is nothing of is left out."""
    sections = {
        "problems": _problems(diagnosis.problems),
        "summary": _summary(diagnosis),
        "configuration": configuration(diagnosis.sites),
        "causes": cause_sections(diagnosis.causes),
        "stays": stays(diagnosis),
        "next": to_do(diagnosis),
        "proof": earned(diagnosis),
        "performance": performance(diagnosis),
        "diagnostics": experiments(diagnosis.diagnostics),
        "trace": trace(diagnosis.trace),
        "static-only": remarks(TITLES["static-only"], diagnosis.static_only),
        "fine": remarks(TITLES["fine"], diagnosis.fine),
        "commands": _commands(diagnosis),
        "reading": _reading(diagnosis),
    }
    lines: list[str] = []
    cases = diagnosis.results.cases if diagnosis.results else ()
    fails = bool(cases) and all(case.variant("original", "eager").status == "case-error" for case in cases)
    whole = (_opening(diagnosis), *(sections[name] for name in TITLES))
    for section in (_problems(diagnosis.problems), _again(diagnosis)) if fails else whole:
        for line in section:
            if line or (lines and lines[-1]):
                lines.append(line)
        if lines and lines[-1]:
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _opening(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"# torch.compile: {inline(diagnosis.title)}"
    yield ""
    yield f"- Date: {inline(diagnosis.started)}"
    proven = ", each fix tried" if diagnosis.proof else ""
    other = "the source and a log" if diagnosis.causes and diagnosis.results is None else "the source alone"
    yield f"- Mode: {'the source and a run of it' if ran_compiled(diagnosis.results) else other}{proven}"
    for fact in diagnosis.facts:
        yield from point(fact)
    if diagnosis.command:
        yield ""
        yield block(diagnosis.command, "bash")


def _problems(problems: Sequence[str]) -> Iterator[str]:
    if problems:
        yield f"## {TITLES['problems']}"
        yield ""
        for problem in problems:
            yield from point(problem)


def _again(diagnosis: Diagnosis) -> Iterator[str]:
    """What to do where no case comes as far as its first call."""
    yield "Your case fails before anything is compiled. Fix it, then run this again:"
    yield ""
    yield block(diagnosis.command, "bash")


def _summary(diagnosis: Diagnosis) -> Iterator[str]:
    causes = diagnosis.causes
    yield f"## {TITLES['summary']}"
    yield ""
    if diagnosis.proof is not None:
        for line in diagnosis.proof.ending.splitlines():
            yield from point(sentence(line))
        yield ""
    if causes:
        rows = [(category, *_counted([c for c in causes if c.category == category])) for category in CATEGORIES]
        total = tuple(f"**{cell}**" for cell in ("total", *_counted(causes)))
        yield from table(("category", *SEVERITIES, "total"), [*rows, total])
        yield ""
    yield from prose(verdict(diagnosis))


def _counted(causes: Sequence[Cause]) -> tuple[str, ...]:
    each = (sum(cause.severity == severity for cause in causes) for severity in SEVERITIES)
    return (*(str(number) for number in each), str(len(causes)))


def _commands(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"## {TITLES['commands']}"
    yield ""
    yield block(commands(diagnosis), "bash")


def _reading(diagnosis: Diagnosis) -> Iterator[str]:
    if ran_compiled(diagnosis.results):
        yield f"## {TITLES['reading']}"
        yield ""
        for term, told in READING:
            yield from prose(told, f"- **{term}**. ", "  ")
