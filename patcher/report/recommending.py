"""What to do about each cause, in words that are the same in every format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.diagnose.diagnosis import SEVERITIES, Cause, Diagnosis, Proof, ProposedFix, Severity, Tried

FATES = {"removed": "removed", "remains": "remains", "unknown": "not known"}
APPLIES = {"safe": "safe", "unsafe": "unsafe", "display-only": "reported only"}


@dataclass(frozen=True)
class Recommendation:
    """``done``: what was kept has removed the cause. ``text``: names in it stand between backticks."""

    cause: Cause
    done: bool
    text: str


def recommendations(diagnosis: Diagnosis) -> Iterator[tuple[Severity, tuple[Recommendation, ...]]]:
    """For each severity that occurs, the gravest first."""
    for severity in SEVERITIES:
        causes = [cause for cause in diagnosis.causes if cause.severity == severity]
        if causes:
            yield severity, tuple(_recommended(cause, diagnosis.proof) for cause in causes)


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


def _recommended(cause: Cause, proof: Proof | None) -> Recommendation:
    kept = proof is not None and any(item.outcome == "kept" for item in proof.tried)
    return Recommendation(cause, cause.fate == "removed" and kept, _what_to_do(cause, proof))


def _what_to_do(cause: Cause, proof: Proof | None) -> str:
    own = any(item.outcome == "kept" for fix in cause.fixes for item in _trials(fix, proof))
    kept = [item for item in (proof.tried if proof else ()) if item.outcome == "kept"]
    if cause.fate == "removed" and kept and not own:
        settings = [item for item in kept if not item.where] or kept
        return f"removed by {', '.join(_code(name) for item in settings for name in item.fixes)}, which was kept."
    fixes = [fix for fix in cause.fixes if fix.diff]
    if fixes:
        rules = " and ".join(dict.fromkeys(f"{fix.code} ({APPLIES[fix.applicability]})" for fix in fixes))
        told = {
            "removed": f"{rules} removes it" if " and " not in rules else f"{rules} remove it",
            "remains": f"it is still there with {rules}",
            "unknown": f"{rules} may remove it{', which was not measured' if proof is None else ''}",
        }[cause.fate]
        tried = [f"{fix.code}, {item.outcome}" for fix in fixes for item in _trials(fix, proof)]
        return told + (f". Tried: {'; '.join(dict.fromkeys(tried))}." if tried else ".")
    if cause.fate == "removed":
        return "it goes away with the fixes of other causes."
    if cause.advice:
        return f"no rule mends it, but a setting helps: {', or '.join(_code(item.flag) for item in cause.advice)}."
    if cause.note:
        return "see the note there."
    if cause.fixes:
        return f"to be changed by hand: {cause.fixes[0].message}."
    return "to be changed by hand, PyTorch's hints are above." if cause.hints else "no fix is known."


def _trials(fix: ProposedFix, proof: Proof | None) -> list[Tried]:
    tried = proof.tried if proof else ()
    return [
        item
        for item in tried
        if fix.where in item.where and any(fix.code in re.split(r"[ ,]+", name) for name in item.fixes)
    ]


def _code(text: str) -> str:
    marks = "``" if "`" in text else "`"
    return f"{marks}{text}{marks}"
