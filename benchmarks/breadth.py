"""What the tool does to a zoo of models, as the tables of docs/results/breadth.md.

    python benchmarks/breadth.py --safe FILE [--unsafe FILE] [--clean FILE] [--findings FILE] [--into DOCUMENT]

The files are what ``zoo.py --out FILE`` wrote (../shared/zoo): one JSON line for each class of models, measured in the
original package and in one that the tool has patched: ``--safe`` by a default run, ``--unsafe`` with that option,
``--clean`` classes that had no break before. ``--findings`` is what ``fix-compile --verify-only --format json`` says
about the patched package of ``--unsafe`` (else of ``--safe``): it is put beside each break that remains.

Extra graphs are the graphs of the first call less one. A class whose outputs are wrong, or that fails, counts as not
improved. Recompiles are those of the second and third call, which have other sizes. The largest difference is that of
five eager calls, original against patched.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remains import findings_of, place, said
from tables import put, table

Json = dict[str, Any]
Classes = dict[str, Json]


def read(path: Path | None) -> Classes:
    """The lines of a file, by class."""
    lines = path.read_text(encoding="utf-8").splitlines() if path else []
    return {line["cls"]: line for line in map(json.loads, filter(None, lines))}


# ---------------------------------------------------------------------------------------------------------------------
# One class.


def failed(line: Json) -> bool:
    return bool(line["crashed"] or line["wrong"])


def after(line: Json) -> Json:
    """What is to be counted of the patched package."""
    if not failed(line):
        found: Json = line["after"]
        return found
    worse = line["after"].get("graphs", 0) > line["before"]["graphs"]
    return {**line["before"], **({"graphs": line["after"]["graphs"]} if worse else {})}


def apart(line: Json) -> float | str | None:
    """The largest difference of the eager outputs: none when they are the same bit for bit."""
    found = [d for d in line["after"].get("vs_orig", ["it does not run"]) if d is not None]
    wrong = [d for d in found if isinstance(d, str)]
    return wrong[0] if wrong else max(found, default=None)


def verdict(line: Json) -> str:
    difference = apart(line)
    if line["crashed"]:
        return "fails: " + "; ".join(line["notes"])[:120]
    if line["wrong"]:
        return "wrong: " + "; ".join(line["notes"])[:120]
    lost = ", a check is lost" if line["guard_lost"] else ""
    return ("bit for bit" if difference is None else f"{difference:.0e}") + lost


# ---------------------------------------------------------------------------------------------------------------------
# The tables.

SUMS: dict[str, Callable[[Json], int]] = {
    "extra graphs": lambda run: run["graphs"] - 1,
    "break events": lambda run: run["events"],
    "places that break": lambda run: len(run["sites"]),
    "recompiles, second call": lambda run: run["recompiles"][0],
    "recompiles, third call": lambda run: run["recompiles"][1],
    "graphs launched in the second and third call": lambda run: sum(run["launches_later"]),
    "functions that hit the recompile limit": lambda run: len(run["limit_hit"]),
}


def sums(runs: dict[str, Classes]) -> str:
    """All classes together, original beside each run."""
    first = next(iter(runs.values()))
    rows: list[list[object]] = [["classes", len(first), *(len(lines) for lines in runs.values())]]
    for name, count in SUMS.items():
        old = sum(count(line["before"]) for line in first.values())
        new = [sum(count(after(line)) for line in lines.values()) for lines in runs.values()]
        rows.append([name, old, *(f"{n} ({share(old, n)})" for n in new)])
    rows.append(["classes without a break", "0", *(sum(x["break_free"] for x in r.values()) for r in runs.values())])
    rows[-1][1] = sum(not line["before"]["events"] for line in first.values())
    for name, flag in (("that are wrong", "wrong"), ("that fail", "crashed"), ("that lose a check", "guard_lost")):
        rows.append([f"classes {name}", "", *(sum(x[flag] for x in lines.values()) for lines in runs.values())])
    exact = [sum(apart(line) is None for line in lines.values()) for lines in runs.values()]
    rows.append(["eager outputs the same bit for bit", "", *exact])
    return table(["", "original", *runs], rows)


def share(old: int, new: int) -> str:
    return f"{100 * (new - old) / old:+.0f} %" if old else "n/a"


def classes(runs: dict[str, Classes]) -> str:
    """One row for each class."""
    names = ["graphs", "break events", "recompiles, 2nd call", "recompiles, 3rd call", "outputs"]
    rows = []
    for cls, line in sorted(next(iter(runs.values())).items()):
        old, new = line["before"], [lines[cls] for lines in runs.values() if cls in lines]
        counts: list[Callable[[Json], object]] = [
            lambda run: run["graphs"],
            lambda run: run["events"],
            lambda run: run["recompiles"][0],
            lambda run: run["recompiles"][1],
        ]
        cells = [" -> ".join(str(count(run)) for run in (old, *map(after, new))) for count in counts]
        rows.append([cls, *cells, " / ".join(dict.fromkeys(map(verdict, new)))])
    return table(["class", *names], rows)


def remaining(runs: dict[str, Classes], findings: Json) -> str:
    """What still breaks in the last run, by place: Dynamo's reason, and what the tool says about that line."""
    last = list(runs.values())[-1]
    places: dict[tuple[str, str], list[str]] = {}
    for cls, line in sorted(last.items()):
        for where, reason in after(line)["sites"].items():
            places.setdefault((where, reason), []).append(cls)
    rows = []
    for (where, reason), found in sorted(places.items(), key=lambda item: (-len(item[1]), item[0])):
        who = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        rows.append([f"`{place(where)}`", reason[:110], said(findings, where), who])
    return table(["place", "Dynamo's reason", "what the tool says", "classes"], rows)


def reasons(runs: dict[str, Classes]) -> str:
    """Places that break, by Dynamo's reason; one that several classes share counts once for each."""
    first = next(iter(runs.values()))
    old = Counter(reason for line in first.values() for reason in line["before"]["sites"].values())
    new = [Counter(r for line in lines.values() for r in after(line)["sites"].values()) for lines in runs.values()]
    every = sorted(set(old).union(*new), key=lambda reason: (-old[reason], reason))
    return table(["Dynamo's reason", "original", *runs], [[r[:110], old[r], *(n[r] for n in new)] for r in every])


def clean(lines: Classes) -> str:
    """Classes without a break before: nothing may become worse."""
    more = [cls for cls, line in lines.items() if after(line)["graphs"] > line["before"]["graphs"]]
    changed = [line for line in lines.values() if apart(line) is not None]
    rows = [
        ["classes", len(lines)],
        ["of them with a module that the tool changed", sum(line["touched"] for line in lines.values())],
        ["wrong, or failing", ", ".join(cls for cls, line in lines.items() if failed(line)) or 0],
        ["more graphs", ", ".join(more) or 0],
        ["outputs not the same bit for bit", ", ".join(f"{x['cls']} ({verdict(x)})" for x in changed) or 0],
        ["a check lost", ", ".join(cls for cls, line in lines.items() if line["guard_lost"]) or 0],
    ]
    for number, name in enumerate(("second", "third")):
        both = [sum(run(x)["recompiles"][number] for x in lines.values()) for run in (lambda x: x["before"], after)]
        rows.append([f"recompiles, {name} call", " -> ".join(map(str, both))])
    return table(["", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--safe", type=Path)
    parser.add_argument("--unsafe", type=Path)
    parser.add_argument("--clean", type=Path)
    parser.add_argument("--findings", type=Path)
    parser.add_argument("--into", type=Path, help="the document that holds the tables, between comments")
    given = parser.parse_args()
    runs = {"safe": read(given.safe), "--unsafe": read(given.unsafe)}
    runs = {name: lines for name, lines in runs.items() if lines}
    if runs:
        put(given.into, "sums", sums(runs))
        put(given.into, "classes", classes(runs))
        put(given.into, "reasons", reasons(runs))
        put(given.into, "remaining", remaining(runs, findings_of(given.findings)))
    if given.clean:
        put(given.into, "clean", clean(read(given.clean)))


if __name__ == "__main__":
    main()
