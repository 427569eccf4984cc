"""What is no cause: findings that the run did not confirm, what is fine, how the repository compiles, experiments."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from patcher.diagnose.diagnosis import CompileSite, Diagnostic, GraphPair, Remark, Table
from patcher.report.html.blocks import article, bullets, command, fold, section, table, terms
from patcher.report.html.diffs import side_by_side
from patcher.report.html.markup import Child, Markup, element, join, place, prose
from patcher.report.sections import GRAPHS, TITLES

_AROUND = 2  # lines of a graph before and after what is changed


def static_only(remarks: Sequence[Remark]) -> Markup:
    """Findings without a measured cost."""
    told = "The rules report these, and the run showed no cost of them."
    return _remarks("static-only", told, remarks)


def fine(remarks: Sequence[Remark]) -> Markup:
    """What looks like a cause."""
    return _remarks("fine", "These look like causes and are none.", remarks)


def configuration(sites: Sequence[CompileSite]) -> Markup:
    """Where the repository compiles something, and how."""
    if not sites:
        return Markup("")
    return section("configuration", (_site(number, site) for number, site in enumerate(sites, 1)))


def experiments(diagnostics: Sequence[Diagnostic]) -> Markup:
    """The diagnostics."""
    told = [_diagnostic(number, diagnostic) for number, diagnostic in enumerate(diagnostics, 1)]
    return section("diagnostics", *told) if told else Markup("")


def trace(told: str) -> Markup:
    """What became of the structured trace."""
    return section("trace", element("p", prose(told))) if told else Markup("")


def _remarks(name: str, told: str, remarks: Sequence[Remark]) -> Markup:
    if not remarks:
        return Markup("")
    head = ["Where", "What", "Why", "Code"]
    rows: list[list[Child]] = [
        [place(one.where), prose(one.what), prose(one.why), element("code", one.code) if one.code else "-"]
        for one in remarks
    ]
    if not any(one.code for one in remarks):
        head, rows = head[:-1], [row[:-1] for row in rows]
    return section(name, element("p", told), table(TITLES[name], head, rows, "long"))


def _site(number: int, site: CompileSite) -> Markup:
    arguments = (
        terms((name or "positional", element("code", value)) for name, value in site.arguments)
        if site.arguments
        else "none"
    )
    return article(
        f"site-{number}",
        place(site.where),
        command(site.call),
        terms((("Compiles", element("code", site.target) if site.target else ""), ("Arguments", arguments))),
        bullets(prose(remark) for remark in site.remarks),
    )


def _diagnostic(number: int, diagnostic: Diagnostic) -> Markup:
    bad = diagnostic.status != "ok"
    mark = element("span", diagnostic.status, class_="mark high") if bad else ""
    facts = " · ".join(
        part
        for part in (diagnostic.name, diagnostic.case, f"{diagnostic.seconds:.1f} s" if diagnostic.seconds else "")
        if part
    )
    return article(
        f"diagnostic-{number}",
        diagnostic.title,
        element("p", prose(diagnostic.message)) if diagnostic.message else "",
        _table(f"{diagnostic.title}: {diagnostic.case}", diagnostic.columns, diagnostic.rows),
        bullets(prose(conclusion) for conclusion in diagnostic.conclusions),
        (_more(diagnostic, one) for one in diagnostic.tables),
        (_graph(pair) for pair in diagnostic.graphs),
        element("p", prose(GRAPHS)) if diagnostic.graphs else "",
        beside=element("p", mark, facts, class_="marks"),
    )


def _table(label: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A table in which names may stand between backticks; nothing where there are no rows."""
    return table(label, columns, ([prose(cell) for cell in row] for row in rows)) if rows else Markup("")


def _more(diagnostic: Diagnostic, one: Table) -> Markup:
    told = _table(f"{one.title}: {diagnostic.case}", one.columns, one.rows)
    return join(element("h4", one.title), told) if told else told


def _graph(pair: GraphPair) -> Markup:
    """What a rewrite changes in a graph, side by side."""
    lines = (pair.before.splitlines(keepends=True), pair.after.splitlines(keepends=True))
    name = f"{pair.name}, before"
    changes = difflib.unified_diff(*lines, name, name, n=_AROUND)
    told = "".join(line if line.endswith("\n") else line + "\n" for line in changes)
    shown = side_by_side(told) if told else element("p", "Nothing is changed.")
    return fold(f"{pair.name}: {pair.note}", shown)
