"""What has cost something: the counts, the list, and a section for each cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from patcher.diagnose.diagnosis import CATEGORIES, SEVERITIES, Advice, Cause, Diagnosis, Impact, ProposedFix
from patcher.report.html.blocks import article, bullets, command, fold, link, listing, section, table, terms
from patcher.report.html.diffs import side_by_side
from patcher.report.html.markup import Markup, element, join, paragraphs, place, prose
from patcher.report.recommending import APPLIES, FATES, Recommendation
from patcher.report.recommending import recommendations as recommended
from patcher.report.verdict import verdict

_APPLIED = {"safe": ", applied by default", "unsafe": ", applied with --unsafe", "display-only": ""}


def summary(diagnosis: Diagnosis) -> Markup:
    """How many of each category and severity, what becomes of them, and the list of all."""
    causes = diagnosis.causes
    told = element("p", prose(verdict(diagnosis)))
    ending = element("p", prose(diagnosis.proof.ending), class_="lead") if diagnosis.proof else ""
    if not causes:
        return section("summary", ending, told)
    head = ("Category", *(severity.capitalize() for severity in SEVERITIES), "Total")
    rows = []
    for category in CATEGORIES:
        counts = [sum((cause.category, cause.severity) == (category, one) for cause in causes) for one in SEVERITIES]
        rows.append([category[:1].upper() + category[1:], *(str(count) for count in (*counts, sum(counts)))])
    sums = [sum(cause.severity == severity for cause in causes) for severity in SEVERITIES]
    rows.append(["Total", *(str(count) for count in (*sums, len(causes)))])
    counted = table("Causes by category and severity", head, rows, "counts")
    listed = table(
        "All causes", ("No.", "Severity", "Cause", "Where", "Cost", "With the fixes"), map(_row, causes), "list"
    )
    return section("summary", ending, counted, told, listed)


def details(causes: Sequence[Cause]) -> Markup:
    """A section for each cause. What is the same for several is told once, and linked from the others."""
    told: dict[tuple[str, ...], str] = {}
    for cause in causes:
        for number, fix in enumerate(cause.fixes, 1):
            for text in (_diff(fix), _words(fix)):
                told.setdefault(text, _anchor(cause, number))
    return section("causes", (_cause(cause, told) for cause in causes)) if causes else Markup("")


def recommendations(diagnosis: Diagnosis) -> Markup:
    """What to do, the gravest first."""
    told = [
        join(element("h3", severity.capitalize()), element("ul", map(_recommendation, items)))
        for severity, items in recommended(diagnosis)
    ]
    return section("recommendations", *told) if told else Markup("")


def _recommendation(item: Recommendation) -> Markup:
    cause = item.cause
    done = join(element("span", "done", class_="mark kept"), " ") if item.done else ""
    link = element("a", f"Cause {cause.number}", href=f"#cause-{cause.number}")
    where = join(" at ", place(cause.where)) if cause.where else ""
    return element("li", done, link, ", ", prose(cause.title), where, ": ", prose(item.text))


def _diff(fix: ProposedFix) -> tuple[str, ...]:
    return (fix.diff,)


def _words(fix: ProposedFix) -> tuple[str, ...]:
    return (fix.code, fix.why, fix.safety)


def _anchor(cause: Cause, number: int) -> str:
    return f"fix-{cause.number}-{number}"


def _row(cause: Cause) -> list[Markup]:
    cost = ", ".join(f"{figure} {what}" for figure, what in _costs(cause.impact)[:2]) or "-"
    return [
        join(str(cause.number)),
        _severity(cause),
        element("a", prose(cause.title), href=f"#cause-{cause.number}"),
        place(cause.where),
        join(cost),
        join(FATES[cause.fate]),
    ]


def _severity(cause: Cause) -> Markup:
    return element("span", cause.severity, class_=f"mark {cause.severity}")


def _cause(cause: Cause, told: Mapping[tuple[str, ...], str]) -> Markup:
    here = cause.where.rpartition(":")[2]
    code = listing(cause.code, int(here) if here.isdecimal() else None) if cause.code else ""
    return article(
        f"cause-{cause.number}",
        join(element("span", f"{cause.number}. ", class_="number"), prose(cause.title)),
        _impact(cause.impact),
        _facts(cause),
        element("p", prose(cause.note), class_="note") if cause.note else "",
        join(element("h4", "Current code"), code) if code else "",
        (_fix(fix, _anchor(cause, number), told) for number, fix in enumerate(cause.fixes, 1)),
        _unfixed(cause),
        _advice(cause.advice),
        join(element("h4", "Verify"), command(cause.verify)) if cause.verify else "",
        beside=element("p", _severity(cause), element("span", cause.category, class_="mark"), class_="marks"),
        classes="cause",
    )


def _facts(cause: Cause) -> Markup:
    function = element("code", cause.function) if cause.function else ""
    where = join(place(cause.where), " in ", function) if cause.where and function else function or place(cause.where)
    reference = " ".join(part for part in (cause.registry, "in PyTorch's graph-break registry") if part)
    return terms(
        (
            ("Location", where),
            ("Trigger", element("code", cause.trigger) if cause.trigger else ""),
            ("Reason", prose(cause.reason)),
            ("Cases", ", ".join(cause.cases)),
            ("With the fixes", FATES[cause.fate] + _then(cause)),
            ("Second run", "" if cause.steady else "it was not seen again"),
            ("Reference", link(cause.reference, reference) if cause.reference else cause.registry),
        )
    )


def _then(cause: Cause) -> str:
    """What it costs then, when that is something else than before."""
    then = _costs(cause.after) if cause.after else []
    return "" if not then or then == _costs(cause.impact) else ": " + ", ".join(f"{n} {what}" for n, what in then)


def _costs(impact: Impact) -> list[tuple[str, str]]:
    """The figures that are not 0, and what they count."""
    counted = (
        (impact.launches, "launch", "launches"),
        (impact.breaks, "break", "breaks"),
        (impact.dropped_frames, "dropped frame", "dropped frames"),
        (impact.recompiles, "recompile", "recompiles"),
        (impact.limit_hits, "recompile-limit hit", "recompile-limit hits"),
        (impact.cudagraph_skips, "CUDA-graph skip", "CUDA-graph skips"),
    )
    return [(str(count), one if count == 1 else many) for count, one, many in counted if count]


def _impact(impact: Impact) -> Markup:
    """Large figures; those that were not counted are left out."""
    costs = [(what, figure) for figure, what in _costs(impact)]
    if impact.launches and impact.calls:
        calls = "1 call" if impact.calls == 1 else f"{impact.calls} calls"
        costs[0] = (f"{costs[0][0]} in a settled pass of {calls}", costs[0][1])
    if impact.compile_seconds is not None:
        costs.append(("of compilation", f"about {impact.compile_seconds:.1f} s"))
    return terms(costs, "figures") if costs else element("p", "No cost was counted.")


def _fix(fix: ProposedFix, name: str, told: Mapping[tuple[str, ...], str]) -> Markup:
    heading = element("h4", f"Fix {fix.code} {fix.name}" if fix.diff else f"Finding {fix.code} {fix.name}")
    facts = terms(
        (
            ("Safety", _applies(fix)),
            ("Where", place(fix.where) if fix.where else ""),
            ("Finding", prose(fix.message)),
            ("Assumption" if fix.diff else "Why no fix", prose(fix.assumption)),
            ("Strategy", element("code", fix.strategy) if fix.strategy else ""),
        )
    )
    diff = side_by_side(fix.diff) if told[_diff(fix)] == name else _see("The diff", told[_diff(fix)])
    why = join(element("h5", "Why it breaks compilation"), paragraphs(fix.why)) if fix.why else ""
    safety = fold("Fix safety", paragraphs(fix.safety)) if fix.safety else ""
    words = join(why, safety) if told[_words(fix)] == name else _see("Why, and what makes it safe", told[_words(fix)])
    shown = [heading, facts, diff if fix.diff else "", words if fix.why or fix.safety else ""]
    return element("div", fold(*shown, opened=True, classes="fix"), id=name)


def _see(what: str, name: str) -> Markup:
    """Where it has been told already."""
    number = name.split("-")[1]
    return element("p", f"{what}: as told at ", element("a", f"cause {number}", href=f"#{name}"), ".")


def _applies(fix: ProposedFix) -> str:
    return APPLIES[fix.applicability] + _APPLIED[fix.applicability]


def _unfixed(cause: Cause) -> Markup:
    """PyTorch's own words; they are all there is where no rule has a fix, so then they are open."""
    if not cause.explanation and not cause.hints:
        return Markup("")
    opened = not any(fix.diff for fix in cause.fixes)
    told = join(paragraphs(cause.explanation), bullets(prose(hint) for hint in cause.hints))
    return fold(element("h4", "PyTorch's explanation and hints"), told, opened=opened, classes="fix")


def _advice(advice: Sequence[Advice]) -> Markup:
    if not advice:
        return Markup("")
    rows = ([element("code", one.flag), prose(one.effect), prose(one.cost)] for one in advice)
    return join(
        element("h4", "Settings that would do it"), table("Settings", ("Setting", "Effect", "Cost"), rows, "long")
    )
