"""What to do about each cause, in words that are the same in every format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from patcher.diagnose.diagnosis import Cause, Diagnosis, Proof, ProposedFix, Tried
from patcher.harness.measured import Counts, Results, Tree
from patcher.report.harness import CASE_MEANING, VARIANT_MEANING
from patcher.words import COUNTED, code, counts, many

SEVERITY = {
    "high": "a function falls back to eager (a dropped frame, or the recompile limit was hit), or at least"
    " half of all launches of a pass are due to it",
    "medium": "it costs launches or CUDA graphs in each pass, or compiles again more than once",
    "low": "it costs once: it compiles a little longer",
}
READING: tuple[tuple[str, str], ...] = (
    ("Severity", " ".join(f"{severity.capitalize()}: {told}." for severity, told in SEVERITY.items())),
    (
        "Launches",
        "Compiled graphs that start behind this cause, or in functions that are compiled by themselves because of it,"
        " in one settled pass over all calls. One that several causes have a part in is divided among them.",
    ),
    ("Compilation", "About how long those graphs, or repeated compilations, took; left out where that cannot be told."),
    ("Cases", CASE_MEANING),
    ("Variants", VARIANT_MEANING),
    ("Dash", "A figure that was not measured. It is not a zero."),
)


TITLES: dict[str, str] = {
    "problems": "What went wrong",
    "summary": "Summary",
    "stays": "What stays, and why",
    "next": "What to do next",
    "configuration": "How the repository compiles",
    "causes": "Causes",
    "proof": "What each fix earned",
    "performance": "Performance",
    "diagnostics": "Diagnostics",
    "trace": "Trace",
    "static-only": "Found in the source, not seen in the run",
    "fine": "Fine as it is",
    "commands": "Diagnostic commands",
    "reading": "How to read it",
}

#: Where the graphs of a diagnostic are.
GRAPHS = "The graphs before and after are also files: with `-o NAME.html` in the folder `NAME.graphs` beside it."


def verdict(diagnosis: Diagnosis) -> str:
    """How many causes, what becomes of them, and whether that shows in the counts of the whole."""
    if not diagnosis.causes:
        if diagnosis.diagnostics and all(one.name == "fusions" for one in diagnosis.diagnostics):
            return "Only operators that are written by hand were looked for."
        if not ran_compiled(diagnosis.results, "original"):
            then = " With the fixes it does." if ran_compiled(diagnosis.results, "patched") else ""
            return f"The original did not come to its end compiled, so no cause can be told.{then}"
        if seen := _events(diagnosis.results):
            return f"The original has {seen}; what causes them was not looked for."
        return "No cause was found." if diagnosis.problems else "No graph break, recompile or skip was seen."
    fates = Counter(cause.fate for cause in diagnosis.causes)
    count, unknown = len(diagnosis.causes), fates["unknown"]
    sentences = [f"{many(count, 'cause')}."]
    if count > unknown:
        sentences.append(f"With the fixes {_are(fates['removed'])} gone and {_are(fates['remains'])} left.")
    sentences += _unknown(diagnosis, count, unknown)
    unsteady = sum(not cause.steady for cause in diagnosis.causes)
    if unsteady:
        sentences.append(f"{unsteady} did not show up in a second run of the same code.")
    if diagnosis.effect and diagnosis.proof is None:
        sentences.append(f"All fixes together: {diagnosis.effect}.")
    return " ".join(sentences)


def _unknown(diagnosis: Diagnosis, count: int, unknown: int) -> Iterable[str]:
    """Yield what is said of causes of which nobody knows whether they are still there with the fixes."""
    if diagnosis.proof is not None and all(one.outcome != "kept" for one in diagnosis.proof.tried):
        yield "Nothing was kept."
    elif unknown:
        them = "it" if count == 1 else "them" if count == unknown else f"{unknown} of them"
        yield f"What the fixes do to {them} is not known."


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count or 'none'} are"


def ran_compiled(results: Results | None, *trees: Tree) -> bool:
    """Whether anything compiled of these trees, of any when none is named, has come to its end."""
    return results is not None and any(
        variant.kind == "compiled" and variant.figures is not None and (not trees or variant.tree in trees)
        for case in results.cases
        for variant in case.variants
    )


def _events(results: Results | None) -> str:
    """What the original, compiled, has counted: ``3 breaks, 2 recompiles``."""
    found = [
        variant.figures.counts
        for case in (results.cases if results else ())
        for variant in case.variants
        if variant.figures and (variant.tree, variant.kind) == ("original", "compiled")
    ]
    return counts(Counts(**{name: sum(getattr(one, name) for one in found) for name in COUNTED}))


FATES = {"removed": "removed", "remains": "remains", "unknown": "not known"}
_LONGER = 1800  # seconds
_LIMIT = re.compile(r"( --(?:budget|prove-limit|tune-limit)[ =])(\d+)")
APPLIES = {"safe": "safe", "unsafe": "unsafe", "display-only": "reported only"}


def steps(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    """Yield what to do next, each with the command for it, or "": the patch first, then causes, the gravest first."""
    proof, left = diagnosis.proof, list[str]()
    if proof is not None and proof.patch:
        yield "Write the fixes that were kept:", f"git apply {proof.patch}"
    for cause in diagnosis.causes:
        dropped = proof is not None and any(fix.diff for fix in cause.fixes) and _dropped(cause, proof)
        text = "" if dropped or _is_done(cause, proof) else _what_to_do(cause, proof)
        if text:
            how = "; ".join(f"fix-compile rules {name}" for name in dict.fromkeys(fix.code for fix in cause.fixes))
            yield f"{cause.severity} priority: {_named(cause)}: {text}", how
    for item in proof.tried if proof else ():
        left += map(code, item.fixes) if item.outcome == "not tried" else ()
    if left:
        words, *program = diagnosis.command.split(" -- ")
        given = _LIMIT.search(words)
        seconds = max(_LONGER, 2 * int(given[2])) if given else _LONGER
        words = _LIMIT.sub(rf"\g<1>{seconds}", words) if given else f"{words} --budget {seconds}"
        yield f"measure what the budget has left out, {', '.join(left)}:", " -- ".join([words, *program])


def stays(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield what a search has not removed, and what it has dropped, each with the reason."""
    proof, told = diagnosis.proof, list[Tried]()
    if proof is None:
        return
    for cause in diagnosis.causes:
        if not _is_done(cause, proof):
            told += (dropped := _dropped(cause, proof))
            why = [_why(item) for item in dropped] + [f"no fix: {f.assumption}" for f in cause.fixes if not f.diff]
            known = ", ".join(dict.fromkeys(code(fix.code) for fix in cause.fixes if fix.diff))
            other = f"{known} was not tried, or did not remove it" if known else cause.note or "no fix is known"
            yield f"{_named(cause)}: {'; '.join(dict.fromkeys(why)) or other}"
    yield from (_why(one) for one in proof.tried if one not in told and one.outcome not in ("kept", "not tried"))


def _named(cause: Cause) -> str:
    return f"cause {cause.number}, {cause.title}" + (f" at {code(cause.where)}" if cause.where else "")


def _is_done(cause: Cause, proof: Proof | None) -> bool:
    """Whether what was kept has removed it."""
    return cause.fate == "removed" and proof is not None and any(item.outcome == "kept" for item in proof.tried)


def _dropped(cause: Cause, proof: Proof) -> list[Tried]:
    """What was tried for a cause and not kept."""
    found = [item for fix in cause.fixes for item in _trials(fix, cause.function, proof)]
    found += [item for item in proof.tried for one in cause.advice if one.flag.endswith(_settings(item))]
    return [item for item in found if item.outcome not in ("kept", "not tried")]


def _settings(item: Tried) -> tuple[str, ...]:
    """What was tried together, each as its code says it."""
    return tuple(one for name in item.fixes for one in name.split(", "))


def _why(item: Tried) -> str:
    return f"{', '.join(map(code, item.fixes))} was dropped: {item.reason}"


def compared(proof: Proof | None) -> str:
    """What a measurement compares: of all fixes without a proof, else of those that the proof ended with."""
    return "original against all fixes" if proof is None else "original against the fixes that were kept"


def commands(diagnosis: Diagnosis) -> str:
    """What to run next, with comments; for a shell."""
    lines = ["# breaks and recompiles of a script of yours, as PyTorch logs them"]
    lines.append('TORCH_LOGS="graph_breaks,recompiles,cudagraphs" python SCRIPT')
    if diagnosis.results is None:  # read from a log
        lines += ["", "# make that script fast, with proof", "fix-compile optimize -- python SCRIPT"]
    elif diagnosis.command:
        lines += ["", "# this report again", diagnosis.command]
        if not diagnosis.trace and diagnosis.proof is None:
            lines += ["", "# and keep PyTorch's structured trace, for tlparse", f"{diagnosis.command} --trace trace"]
        if diagnosis.proof is None and any(fix.diff for cause in diagnosis.causes for fix in cause.fixes):
            shown = [fix for cause in diagnosis.causes for fix in cause.fixes if fix.diff]
            unsafe = " --unsafe" * any(fix.applicability == "unsafe" for fix in shown)
            grades = unsafe if "--unsafe" not in diagnosis.command else ""
            lines += ["", "# keep the fixes that earn something", f"{diagnosis.command} --prove{grades}"]
    return "\n".join(lines)


def _what_to_do(cause: Cause, proof: Proof | None) -> str:
    fixes = [fix for fix in cause.fixes if fix.diff]
    if fixes:
        rules = " and ".join(dict.fromkeys(f"{fix.code} ({APPLIES[fix.applicability]})" for fix in fixes))
        return {
            "removed": f"with {rules} it is gone.",
            "remains": f"it is still there with {rules}.",
            "unknown": f"{rules} may remove it{', which was not measured' if proof is None else ''}.",
        }[cause.fate]
    if cause.category == "CUDA graphs" and cause.note:
        return cause.note
    if cause.fate == "removed":
        return "it goes away with the fixes of other causes."
    dropped = tuple(name for item in (_dropped(cause, proof) if proof else ()) for name in _settings(item))
    if flags := [code(one.flag) for one in cause.advice if not one.flag.endswith(dropped)]:
        return f"no rule fixes it, but a setting helps: {', or '.join(flags)}."
    if cause.fixes:
        return f"to be changed by hand: {cause.fixes[0].message}."
    if cause.hints:
        return "to be changed by hand, PyTorch's hints are below."
    return "" if cause.note else "no fix is known."


def _trials(fix: ProposedFix, function: str, proof: Proof | None) -> list[Tried]:
    tried = proof.tried if proof else ()
    return [
        item
        for item in tried
        if (fix.where in item.where or not item.where)
        and any(fix.code in re.split(r"[ ,]+", name) and (item.where or function in name) for name in item.fixes)
    ]
