"""The optimisation report as Markdown, to read in a terminal and to keep beside the code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from patcher.diagnose.diagnosis import CATEGORIES, SEVERITIES, Cause, Diagnosis
from patcher.report.markdown.blocks import block, inline, many, point, prose, table
from patcher.report.markdown.causes import cause_sections, recommendations
from patcher.report.markdown.measured import any_compiled, earned, performance
from patcher.report.markdown.remarks import configuration, experiments, remarks, trace
from patcher.report.reading import READING


def diagnosis_markdown(diagnosis: Diagnosis) -> str:
    """All of it, a section each; what there is nothing of is left out."""
    sections = (
        _opening(diagnosis),
        _problems(diagnosis.problems),
        _summary(diagnosis),
        configuration(diagnosis.sites),
        cause_sections(diagnosis.causes),
        recommendations(diagnosis),
        earned(diagnosis),
        performance(diagnosis),
        experiments(diagnosis.diagnostics),
        trace(diagnosis.trace),
        remarks("Found in the source, not seen in the run", diagnosis.static_only),
        remarks("Fine as it is", diagnosis.fine),
        _commands(diagnosis),
        _reading(diagnosis),
    )
    lines: list[str] = []
    for section in sections:
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
    yield f"- Mode: {'the source and a run of it' if any_compiled(diagnosis.results) else 'the source alone'}{proven}"
    for fact in diagnosis.facts:
        yield from point(fact)
    if diagnosis.command:
        yield ""
        yield block(diagnosis.command, "bash")


def _problems(problems: Sequence[str]) -> Iterator[str]:
    if problems:
        yield "## What went wrong"
        yield ""
        for problem in problems:
            yield from point(problem)


def _summary(diagnosis: Diagnosis) -> Iterator[str]:
    causes = diagnosis.causes
    yield "## Summary"
    yield ""
    rows = [(category, *_counted([c for c in causes if c.category == category])) for category in CATEGORIES]
    total = tuple(f"**{cell}**" for cell in ("total", *_counted(causes)))
    yield from table(("category", *SEVERITIES, "total"), [*rows, total])
    yield ""
    yield from prose(_verdict(diagnosis))


def _counted(causes: Sequence[Cause]) -> tuple[str, ...]:
    each = (sum(cause.severity == severity for cause in causes) for severity in SEVERITIES)
    return (*(str(number) for number in each), str(len(causes)))


def _verdict(diagnosis: Diagnosis) -> str:
    if not diagnosis.causes:
        if not any_compiled(diagnosis.results):
            return "Nothing that is compiled came to its end, so no cause can be told."
        return "No cause was found." if diagnosis.problems else "The run showed nothing that costs something."
    fates = Counter(cause.fate for cause in diagnosis.causes)
    told = [f"{fates['removed']} removed", f"{fates['remains']} left"] if len(fates) > 1 or not fates["unknown"] else []
    told += [f"{fates['unknown']} of which that is not known"] if fates["unknown"] else []
    unsteady = sum(not cause.steady for cause in diagnosis.causes)
    once = f" {unsteady} did not show up in a second run of the same code." if unsteady else ""
    effect = f" All fixes together: {diagnosis.effect}." if diagnosis.effect else ""
    return f"{many(len(diagnosis.causes), 'cause')}; when all fixes are in: {', '.join(told)}.{once}{effect}"


def _commands(diagnosis: Diagnosis) -> Iterator[str]:
    yield "## Diagnostic commands"
    yield ""
    lines = ["# breaks and recompiles of a script of yours, as PyTorch logs them"]
    lines.append('TORCH_LOGS="graph_breaks,recompiles,cudagraphs" python SCRIPT')
    if diagnosis.command:
        lines += ["", "# this report again", diagnosis.command]
        if not diagnosis.trace:
            lines += ["", "# and keep PyTorch's structured trace, for tlparse", f"{diagnosis.command} --trace trace"]
        if diagnosis.proof is None and any(fix.diff for cause in diagnosis.causes for fix in cause.fixes):
            lines += ["", "# keep the fixes that earn something", f"{diagnosis.command} --prove"]
    yield block("\n".join(lines), "bash")


def _reading(diagnosis: Diagnosis) -> Iterator[str]:
    if any_compiled(diagnosis.results):
        yield "## How to read it"
        yield ""
        for term, told in READING:
            yield from prose(told, f"- **{term}**. ", "  ")
