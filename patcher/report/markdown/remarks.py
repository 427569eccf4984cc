"""What is no cause: the repository's configuration, experiments, and what the run did not confirm."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.diagnose.diagnosis import CompileSite, Diagnostic, Remark
from patcher.report.markdown.blocks import NONE, Blocks, block, cells, code, decimal, inline, points, prose, table
from patcher.report.sections import GRAPHS


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
