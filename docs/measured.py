"""Where figures come from: the line "Measured on ..." of each page of docs/results, and README's tables of figures.

A page's record is a comment below its title, kept by hand:

    <!-- measured: at COMMIT; with COMMAND -->
    <!-- measured: at COMMIT and later, from git log; depends on FC302 FC303 facts; with COMMAND -->
    <!-- measured: at not known; with COMMAND -->

- ``and later``: parts of the page were measured at later commits; this is the first one.
- ``from git log``: the page names no commit. This is the commit of its figures, or the one before where only documents
  changed with them.
- ``depends on``: the rules that the figures depend on, ``facts`` for the analyses, or ``nothing``.
  All of them when left out.

Below the comment `make docs` writes a line: the record, its date, and which rules have changed since, up to the working
tree at that moment. ``docs/generate.py --check`` compares only what the record itself says:

- The date and what has changed come from git, and a shallow clone has neither.
- A line that had to be fresh would make each commit that touches a rule fail. A stale line says too little, and the
  next `make docs` extends it.

README's figures are held more strictly: tests/test_claims.py fails when a claim is out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from docs.since import ANALYSES, ROOT, changed_since, date_of, is_ancestor, sentence, why_not_comparable

RESULTS = ROOT / "docs" / "results"
CLAIMS = RESULTS / "claims.json"
END = "<!-- end of measured -->"
UNKNOWN = "not known"
_RECORD = re.compile(
    rf"^<!-- measured: at (?P<commit>[0-9a-f]{{7,40}}|{UNKNOWN})(?P<later> and later)?(?P<guessed>, from git log)?"
    r"(?:; depends on (?P<depends>[^;]+))?; with (?P<command>.+) -->\n\n(?:(?P<line>.+)\n\n)?"
    rf"{END}$",
    re.MULTILINE,
)
_FROM_GIT = re.compile(r" \(\d{4}-\d\d-\d\d\)| Changed since: .*")
Claims = dict[str, dict[str, Any]]


def has_figures(text: str) -> bool:
    """Whether a page has a table with digits in it."""
    return re.search(r"^\|.*\d.*\|$", text, re.MULTILINE) is not None


def with_line(text: str, name: str, fresh: bool) -> str:
    """Return a page with its line as the record says; raise SystemExit when it has no record.

    ``fresh``: write date and changes from git. Otherwise they stay as they are in the page.
    """
    found = _RECORD.search(text)
    if found is None:
        raise SystemExit(f"{name} has figures, and no record of where they come from: see docs/measured.py")
    old, new = found["line"] or "", _line(found, fresh)
    if not fresh and _FROM_GIT.sub("", old) == new:
        return text
    head = found[0].partition("\n")[0]
    return text.replace(found[0], f"{head}\n\n{new}\n\n{END}")


def _line(record: re.Match[str], fresh: bool) -> str:
    """The visible line of a record."""
    commit, command = record["commit"], record["command"]
    if commit == UNKNOWN:
        return f"Measured with `{command}`; the commit is not known."
    if fresh and not is_ancestor(commit):
        raise SystemExit(f"{commit} of a record in docs/results is no commit before this one")
    date = f" ({date_of(commit)})" if fresh else ""
    about = (" and later commits" if record["later"] else "") + (", found by `git log`," if record["guessed"] else "")
    words = record["depends"].split() if record["depends"] else None
    changed = relevant(changed_since(commit), words) if fresh else []
    since = f" Changed since: {sentence(changed)}." if changed else ""
    return f"Measured on {commit}{date}{about} with `{command}`.{since}"


def relevant(changed: list[str], depends: list[str] | None) -> list[str]:
    """Those of ``changed`` that are among ``depends``; all of them without."""
    if depends is None:
        return changed
    return [group for group in changed if group in depends or (group == ANALYSES and "facts" in depends)]


def pages(check: bool) -> dict[Path, str]:
    """The pages of docs/results that have figures, with their lines."""
    fresh = not check and why_not_comparable() is None
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(RESULTS.glob("*.md"))}
    return {path: with_line(text, path.name, fresh) for path, text in texts.items() if has_figures(text)}


def claims() -> Claims:
    """The figures of README, as ``make claims`` has written them."""
    told: Claims = json.loads(CLAIMS.read_text(encoding="utf-8"))
    return told


def why_stale(name: str, claim: dict[str, Any], patch: Callable[[], str]) -> str | None:
    """Return what is wrong with a claim and what to do; None when it is of the rules and analyses as they are.

    Where they have changed, ``patch`` is asked for the digest of what the tool writes now: the same patch has the same
    figures. A rule counts when the tool had findings of it in what was measured. A claim ``by_hand`` may be ``old``:
    README says so.
    """
    commit = claim["commit"]
    again = f'measure it by hand ({claim["command"]}), or set "old": true' if claim.get("by_hand") else ""
    again = f"claim {name!r} of README: {{}}; {again or f'`make claims ARGS={name}` measures it again'}"
    if commit.endswith("+changes"):
        return again.format("it was measured with changes that are not committed")
    if not is_ancestor(commit):
        return again.format(f"{commit} is no commit before this one")
    if claim.get("by_hand") and claim.get("old"):
        return None
    changed = relevant(changed_since(commit), [*claim["rules"], "facts"])
    if not changed or ("patch" in claim and patch() == claim["patch"]):
        return None
    verb = "has" if len(changed) == 1 and changed != [ANALYSES] else "have"
    return again.format(f"{sentence(changed)} {verb} changed since {commit}")


def blocks(claims: Claims) -> dict[str, str]:
    """The generated parts of README, by the names of their markers."""
    head = ["model", "what is counted", "original", "safe fixes", "`--unsafe`", "outputs", "measured"]
    rows = []
    for name, claim in claims.items():
        values, page = claim["values"], claim.get("page", "")
        what = f"[{claim['what']}]({page})" if page else claim["what"]
        counts = [values.get(key, "") for key in ("original", "safe", "unsafe")]
        rows.append([what, claim["counted"], *counts, values["outputs"], _provenance(name, claim)])
    times = ["model", "eager ms", "compiled ms, original", "compiled ms, safe fixes", "measured"]
    timed = [
        [
            claim["what"],
            *(claim["values"][key] for key in ("eager ms", "original ms", "safe ms")),
            _provenance(name, claim),
        ]
        for name, claim in claims.items()
        if "eager ms" in claim["values"]
    ]
    return {"claims": _table(head, rows) + "\n\n" + _table(times, timed), "demo": _demo(claims["demo"])}


def _demo(claim: dict[str, Any]) -> str:
    """What `make demo` ends with."""
    values = claim["values"]
    eager, old, new = (values[f"{key} ms"] for key in ("eager", "original", "safe"))
    gains = f"{eager / new:.2g}x eager, {old / new:.2g}x compiled"
    return (
        f"```\neager {eager} ms | compiled as it was {old} ms | now {new} ms ({gains}), "
        f"results {values['outputs']}\n```\n\n"
        f"({claim['device']}, torch {claim['torch']}, {claim['commit']}.)"
    )


def _provenance(name: str, claim: dict[str, Any]) -> str:
    """Commit, date, torch and device of a claim."""
    hand = ", by hand" if claim.get("by_hand") else f", `{name}`"
    hand += ", older rules" if claim.get("old") else ""
    return f"{claim['commit']}, {claim['date']}, torch {claim['torch']}, {claim['device']}{hand}"


def _table(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
