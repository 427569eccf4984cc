"""For GitHub Actions: workflow commands, which become annotations on the changed lines of a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from patcher.report.outcome import Outcome, remedy
from patcher.results import blamed

# A data part may hold anything but these; a property must also not end itself.
_DATA: dict[str, str | int | None] = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: dict[str, str | int | None] = {**_DATA, ":": "%3A", ",": "%2C"}


def github(outcome: Outcome) -> str:
    """One command per finding: a warning when it can be fixed, else a notice; an error per file that failed."""
    return "".join(line + "\n" for line in _commands(outcome))


def _commands(outcome: Outcome) -> Iterator[str]:
    for result in outcome.results:
        error = outcome.error_of(result)
        place: dict[str, str | int]
        if error:
            yield _command("error", {"file": result.path, "title": "fix-compile"}, error)
        for bug in result.bugs:
            place = {"file": result.path, "line": bug.line, "title": bug.code}
            yield _command("error", place, f"{blamed(bug.code)}: {bug.message}")
    for entry in outcome.entries:  # GitHub shows the first ten of a step: those that cost most
        item = entry.reported
        place = {"file": entry.path, "line": item.line, "endLine": item.end_line, "col": item.column}
        if item.end_line == item.line:  # columns of two different lines make GitHub drop the annotation
            place["endColumn"] = item.end_column
        if entry.status != "fixed":
            kind = "warning" if entry.status == "fixable" else "notice"
            told = f"{item.message} ({item.reached})" if item.reached else item.message
            yield _command(kind, {**place, "title": item.code}, f"{told}\n{remedy(entry)}")
    for overrun in outcome.overruns:
        for where, reason in overrun.places or (("", ""),):
            name, _, line = where.rpartition(":")
            place = {"file": name, "line": int(line)} if name and line.isdigit() else {}
            yield _command("error", {**place, "title": "break budget"}, f"{overrun.told}\n{reason}".rstrip())
    for file in outcome.altered:
        kind = "warning" if outcome.strict else "notice"
        yield _command(kind, {"file": file.path, "title": "fix-compile"}, file.told)


def _command(kind: str, properties: dict[str, str | int], message: str) -> str:
    listed = ",".join(f"{name}={_escaped(str(value), _PROPERTY)}" for name, value in properties.items())
    return f"::{kind} {listed}::{_escaped(message, _DATA)}"


def _escaped(text: str, table: dict[str, str | int | None]) -> str:
    return text.translate(str.maketrans(table))
