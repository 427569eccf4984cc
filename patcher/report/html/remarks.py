"""What is no cause: findings that the run did not confirm, what is fine, how the repository compiles, experiments."""

from __future__ import annotations

from collections.abc import Sequence

from patcher.diagnose.diagnosis import CompileSite, Diagnostic, Remark
from patcher.report.html.blocks import article, bullets, command, section, table, terms
from patcher.report.html.markup import Child, Markup, element, place, prose
from patcher.report.sections import TITLES


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
        table(f"{diagnostic.title}: {diagnostic.case}", diagnostic.columns, diagnostic.rows) if diagnostic.rows else "",
        bullets(prose(conclusion) for conclusion in diagnostic.conclusions),
        beside=element("p", mark, facts, class_="marks"),
    )
