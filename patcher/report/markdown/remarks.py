"""What is no cause: the repository's configuration, experiments, and what the run did not confirm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from patcher.diagnose.diagnosis import CompileSite, Diagnostic, Remark
from patcher.report.markdown.blocks import NONE, block, cells, code, decimal, inline, point, prose, table
from patcher.report.sections import GRAPHS, TITLES


def configuration(sites: Sequence[CompileSite]) -> Iterator[str]:
    """Where and how the repository compiles."""
    if not sites:
        return
    yield f"## {TITLES['configuration']}"
    for site in sites:
        yield ""
        yield f"### {code(site.where)}"
        yield ""
        yield block(site.call, "python")
        yield ""
        yield f"- Compiled: {code(site.target) or NONE}"
        for name, value in site.arguments:
            yield f"- {code(name)}: {code(value)}" if name else f"- {code(value)}"
        for remark in site.remarks:
            yield from point(remark)


def experiments(diagnostics: Sequence[Diagnostic]) -> Iterator[str]:
    """The diagnostics, a table each."""
    if diagnostics:
        yield f"## {TITLES['diagnostics']}"
    for diagnostic in diagnostics:
        yield ""
        yield f"### {inline(diagnostic.title)}: {inline(diagnostic.case)}"
        if diagnostic.status != "ok" or diagnostic.message:
            ended = [] if diagnostic.status == "ok" else [f"It did not end well ({diagnostic.status})"]
            yield ""
            yield from prose(": ".join([*ended, *([diagnostic.message] if diagnostic.message else [])]) + ".")
        if diagnostic.rows:
            yield ""
            yield from table(cells(diagnostic.columns), (cells(row) for row in diagnostic.rows))
        if diagnostic.conclusions:
            yield ""
        for conclusion in diagnostic.conclusions:
            yield from point(conclusion)
        for more in diagnostic.tables:
            yield ""
            yield f"#### {inline(more.title)}"
            yield ""
            yield from table(cells(more.columns), (cells(row) for row in more.rows))
        if diagnostic.graphs:
            yield ""
            yield from prose(GRAPHS)
        yield ""
        yield f"`{inline(diagnostic.option)}`, {decimal(diagnostic.seconds)} s"


def trace(told: str) -> Iterator[str]:
    """What became of the structured trace."""
    if told:
        yield f"## {TITLES['trace']}"
        yield ""
        yield from prose(told)


def remarks(title: str, remarks: Sequence[Remark]) -> Iterator[str]:
    """Places that are no causes, in one table."""
    if not remarks:
        return
    yield f"## {title}"
    yield ""
    with_code = any(remark.code for remark in remarks)
    head = ("at", "what", "why", *(["code"] if with_code else []))
    yield from table(
        head,
        (
            (
                code(remark.where),
                inline(remark.what),
                inline(remark.why),
                *([code(remark.code) or NONE] if with_code else []),
            )
            for remark in remarks
        ),
    )
