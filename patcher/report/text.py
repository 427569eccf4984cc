"""For people: one line per finding that editors can follow, and a summary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from patcher.report.outcome import Entry, Outcome
from patcher.words import many

_FINDING = re.compile(r"^( *)(\S.*?:\d+:\d+:) ([A-Z]+\d+) \[(fixed|(?:safe|unsafe|measured|no) fix)\]", re.MULTILINE)
_COLOURS = {"fixed": 32, "safe fix": 32, "unsafe fix": 33, "measured fix": 33, "no fix": 2}
_FIX = {"safe": "safe fix", "unsafe": "unsafe fix", "display-only": "no fix"}


def text(outcome: Outcome) -> str:
    """What the call was for: after an apply what was changed, for ``--verify-only`` what is still to do."""
    if outcome.call == "verify-only":
        lines = list(_verified(outcome))
    else:
        lines = [line(entry) for entry in outcome.entries if entry.status == "fixed"]
    return "".join(part + "\n" for part in lines)


def line(entry: Entry) -> str:
    """``path:line:column: FC101 [safe fix] message (each call)``."""
    item = entry.reported
    measured = item.measured and item.applicability == "unsafe"
    what = "fixed" if entry.status == "fixed" else "measured fix" if measured else _FIX[item.applicability]
    strategy = f" (strategy {item.strategy})" if item.strategy else ""
    why = ""
    if item.assumption and entry.status != "fixed":
        why = f" -- {'assumes' if item.applicability == 'unsafe' else 'because'}: {item.assumption}"
    reached = f" ({item.reached})" if item.reached else ""
    message = " ".join(f"{item.message}{reached}{strategy}{why}".split())
    return f"{entry.path}:{item.line}:{item.column}: {item.code} [{what}] {message}"


def coloured(told: str) -> str:
    """The findings in a report for a terminal: the place bold, the code, and what can be done about it."""
    return _FINDING.sub(
        lambda m: f"{m[1]}\x1b[1m{m[2]}\x1b[0m \x1b[36m{m[3]}\x1b[0m \x1b[{_COLOURS[m[4]]}m[{m[4]}]\x1b[0m", told
    )


def measurements(outcome: Outcome) -> list[str]:
    """What selftest has shown of the rules that found something: ``FC101: measured on your torch 2.11.0: helps``."""
    codes = sorted({entry.reported.code for entry in outcome.entries} & set(outcome.measured))
    return [f"{code}: {outcome.measured[code]}" for code in codes]


def summary(outcome: Outcome) -> str:
    """``5 findings: 3 fixed, 1 unsafe, 1 without a fix in 2 files``."""
    total, files = len(outcome.entries), len({entry.path for entry in outcome.entries})
    looked_at = len([result for result in outcome.looked_at if not result.error])
    if total:
        fixed, fixable = outcome.count("fixed"), outcome.count("fixable")
        parts = [f"{fixed} fixed"] if outcome.call == "apply" else []
        parts += [f"{fixable} fixable"] if fixable or not parts else []
        parts += [f"{outcome.count('unsafe')} unsafe", f"{outcome.count('no-fix')} without a fix"]
        told = f"{many(total, 'finding')}: {', '.join(parts)} in {many(files, 'file')}"
    else:
        told = f"no {'new ' if outcome.baseline else ''}findings in {many(looked_at, 'file')}"
    if outcome.not_compiled:
        told += f"; skipped {many(outcome.not_compiled, 'function')} not reachable from compiled code"
        told += "" if total else " (see --compiled)"
    if outcome.beside:
        told += f"; {many(outcome.beside, 'test or script', 'tests, examples and scripts')} passed over (see --all)"
    if outcome.suppressed:
        told += f"; {outcome.suppressed} suppressed"
    if outcome.known:
        told += f"; {len(outcome.known)} known"
    if outcome.gone:
        told += f"; {outcome.gone} known no more there (--write-baseline forgets)"
    if outcome.altered:
        told += f"; {many(len(outcome.altered), 'patched file')} altered since"
    failures = sum(bool(outcome.error_of(result)) for result in outcome.results)
    return told + (f"; {many(failures, 'path')} could not be handled" if failures else "")


def _verified(outcome: Outcome) -> Iterator[str]:
    yield from (line(entry) for entry in outcome.entries if entry.status == "fixable")
    drift = [f"{file.path}: altered since run {file.run} patched it ({file.state})" for file in outcome.altered]
    yield from drift if outcome.strict else ()
    for overrun in outcome.overruns:
        yield overrun.told
        yield from (f"  {where or 'somewhere'}: {reason}" for where, reason in overrun.places)
    notes = [entry for entry in outcome.entries if entry.status != "fixable"]
    if (notes or (drift and not outcome.strict)) and not outcome.quiet:
        yield "Notes (for your information; these do not fail the check):"
        yield from ("  " + line(entry) for entry in notes)
        yield from ("  " + told for told in drift if not outcome.strict)
