"""A diagnosis as one HTML file: nothing is fetched, no script runs, all that comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from patcher.diagnose.diagnosis import SEVERITIES, Cause, Diagnosis
from patcher.report.html import causes, measured, proof, remarks
from patcher.report.html.blocks import bullets, command, fold, section, terms
from patcher.report.html.markup import Markup, document, element, join, prose, style
from patcher.report.html.style import SHEET
from patcher.report.reading import READING
from patcher.report.recommending import commands
from patcher.report.sections import TITLES
from patcher.report.verdict import ran_compiled

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """The whole report; to be written as UTF-8."""
    sections = {
        "problems": _problems(diagnosis.problems),
        "summary": causes.summary(diagnosis),
        "configuration": remarks.configuration(diagnosis.sites),
        "causes": causes.details(diagnosis.causes),
        "recommendations": causes.recommendations(diagnosis),
        "proof": proof.proof_section(diagnosis.proof),
        "performance": measured.performance(diagnosis),
        "diagnostics": remarks.experiments(diagnosis.diagnostics),
        "trace": remarks.trace(diagnosis.trace),
        "static-only": remarks.static_only(diagnosis.static_only),
        "fine": remarks.fine(diagnosis.fine),
        "commands": section("commands", command(commands(diagnosis))),
        "reading": _reading(diagnosis),
    }
    parts = [(name, title, sections[name]) for name, title in TITLES.items() if sections[name]]
    links = (element("li", element("a", title, href=f"#{name}")) for name, title, _ in parts)
    body = element(
        "body",
        element("a", "Skip to the report", href="#report", class_="skip"),
        _head(diagnosis),
        element("nav", element("ul", links), aria_label="Contents"),
        element("main", (part for _, _, part in parts), id="report", tabindex=-1),
    )
    return document(element("html", _meta(diagnosis.title), body, lang="en"))


def _meta(title: str) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title}: diagnosis"),
        style(SHEET),
    )


def _head(diagnosis: Diagnosis) -> Markup:
    return element(
        "header",
        element("p", "torch.compile diagnosis", class_="kind"),
        element("h1", diagnosis.title),
        element("p", _counted(diagnosis.causes), class_="lead") if diagnosis.causes else "",
        terms((("Started", _time(diagnosis.started)), ("Measured with", bullets(diagnosis.facts))), "terms"),
        fold("Command", command(diagnosis.command)) if diagnosis.command else "",
        class_="top",
    )


def _time(started: str) -> Markup:
    try:
        when = datetime.fromisoformat(started)
    except ValueError:
        return join(started)
    return element("time", f"{when:%Y-%m-%d %H:%M} {when.tzname() or ''}".strip(), datetime=started)


def _counted(found: Sequence[Cause]) -> str:
    counts = ((severity, sum(cause.severity == severity for cause in found)) for severity in SEVERITIES)
    told = ", ".join(f"{count} {severity}" for severity, count in counts if count)
    return f"{len(found)} cause{'' if len(found) == 1 else 's'}: {told}."


def _problems(problems: Sequence[str]) -> Markup:
    if not problems:
        return Markup("")
    told = "Something went wrong, or was not the same twice. Read the rest with that in mind."
    return section("problems", element("p", told), bullets(prose(problem) for problem in problems))


def _reading(diagnosis: Diagnosis) -> Markup:
    if not ran_compiled(diagnosis.results):
        return Markup("")
    return section("reading", terms((term, join(told)) for term, told in READING))
