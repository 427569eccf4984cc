"""A diagnosis as one HTML file: nothing is fetched, no script runs, all that comes from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from patcher.diagnose.diagnosis import SEVERITIES, Diagnosis
from patcher.report.html import causes, measured, proof, remarks
from patcher.report.html.blocks import bullets, command, fold, section, terms
from patcher.report.html.markup import Markup, document, element, join, prose, style
from patcher.report.html.style import SHEET
from patcher.report.reading import READING

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """The whole report; to be written as UTF-8."""
    found = diagnosis.proof
    results, judgement, earlier = diagnosis.results, diagnosis.judgement, Markup("")
    if found and found.results:  # the state that the tree has ended in is what counts
        earlier = measured.with_all_fixes(results, judgement)
        results, judgement = found.results, found.judgement
    known = measured.any_compiled(diagnosis.results)
    parts = [
        (name, title, part)
        for name, title, part in (
            ("problems", "Problems", _problems(diagnosis.problems)),
            ("proof", "Proof", proof.proof_section(found)),
            ("summary", "Summary", causes.summary(diagnosis.causes, known)),
            ("charts", measured.CHARTS, measured.before_and_after(results)),
            ("cases", "Cases", measured.cases(results, judgement, earlier)),
            ("causes", "Causes", causes.details(diagnosis.causes)),
            ("static-only", "Static only", remarks.static_only(diagnosis.static_only)),
            ("fine", "What is fine", remarks.fine(diagnosis.fine)),
            ("configuration", "Configuration", remarks.configuration(diagnosis.sites)),
            ("diagnostics", "Diagnostics", remarks.experiments(diagnosis.diagnostics, diagnosis.trace)),
            ("reading", "How to read it", _reading()),
        )
        if part
    ]
    links = (element("li", element("a", title, href=f"#{name}")) for name, title, _ in parts)
    body = element(
        "body",
        element("a", "Skip to the report", href="#report", class_="skip"),
        _head(diagnosis, known),
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


def _head(diagnosis: Diagnosis, known: bool) -> Markup:
    return element(
        "header",
        element("p", "torch.compile diagnosis", class_="kind"),
        element("h1", diagnosis.title),
        element("p", _counted(diagnosis, known), class_="lead"),
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


def _counted(diagnosis: Diagnosis, known: bool) -> str:
    causes = diagnosis.causes
    if not causes and not known:
        return "Nothing was measured."
    if not causes:
        return "No cause was found, but not all went well." if diagnosis.problems else "No cause was found."
    counts = ((severity, sum(cause.severity == severity for cause in causes)) for severity in SEVERITIES)
    told = ", ".join(f"{count} {severity}" for severity, count in counts if count)
    fates = [cause.fate for cause in causes]
    after = [(fates.count("removed"), "gone"), (fates.count("remains"), "still there")]
    mended = " and ".join(f"{count} {word}" for count, word in after if count)
    number = f"{len(causes)} cause{'' if len(causes) == 1 else 's'}: {told}."
    return f"{number} With all fixes in: {mended}." if mended else number


def _problems(problems: Sequence[str]) -> Markup:
    if not problems:
        return Markup("")
    told = "Something went wrong, or was not the same twice. Read the rest with that in mind."
    return section("problems", "Problems", element("p", told), bullets(prose(problem) for problem in problems))


def _reading() -> Markup:
    return section("reading", "How to read it", terms((term, join(told)) for term, told in READING))
