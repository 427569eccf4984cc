"""For programs: the documented format of ``docs/json-schema.md``."""

from __future__ import annotations

import json as stdlib_json
from typing import Any

from patcher.report.diff import file_diff
from patcher.report.outcome import Entry, Outcome
from patcher.results import FileResult, Overrun, page

SCHEMA = 1


def json(outcome: Outcome) -> str:
    """The outcome as one JSON document. Only files with something to tell are listed."""
    document = {
        "schema": SCHEMA,
        "tool": {"name": "fix-compile", "version": outcome.version},
        "call": outcome.call,
        "target_torch": "{}.{}".format(*outcome.target_torch),
        "files": [_file(outcome, result) for result in outcome.results if _telling(outcome, result)],
        "measured": [{"code": code, "told": outcome.measured[code]} for code in _measured(outcome)],
        "altered": [{"path": file.path, "state": file.state, "run": file.run} for file in outcome.altered],
        **({"overruns": [_overrun(overrun) for overrun in outcome.overruns]} if outcome.overruns else {}),
        "run": {"id": outcome.run, "store": outcome.store} if outcome.run else None,
        "summary": {
            "files": len(outcome.looked_at),
            "passed_over": outcome.beside,
            "not_compiled": outcome.not_compiled,
            "findings": len(outcome.entries),
            "fixed": outcome.count("fixed"),
            "fixable": outcome.count("fixable"),
            "unsafe": outcome.count("unsafe"),
            "no_fix": outcome.count("no-fix"),
            "suppressed": outcome.suppressed,
            "errors": sum(bool(outcome.error_of(result)) for result in outcome.results),
        },
    }
    return stdlib_json.dumps(document, indent=2) + "\n"


def _overrun(overrun: Overrun) -> dict[str, Any]:
    places = [{"place": where, "reason": reason} for where, reason in overrun.places]
    return {"case": overrun.case, "what": overrun.what, "places": places}


def _measured(outcome: Outcome) -> list[str]:
    """The codes of rules that found something and were measured."""
    return sorted({entry.reported.code for entry in outcome.entries} & set(outcome.measured))


def _telling(outcome: Outcome, result: FileResult) -> bool:
    return bool(outcome.error_of(result) or result.patch)


def _file(outcome: Outcome, result: FileResult) -> dict[str, Any]:
    entries = outcome.entries_of(result)
    told: dict[str, Any] = {
        "path": result.path,
        "error": outcome.error_of(result) or None,
        "changed": _changed(outcome, result, entries),
        "findings": [_finding(entry) for entry in entries],
        "suppressed": result.patch.suppressed if result.patch else 0,
        "bugs": [{"code": bug.code, "line": bug.line, "message": bug.message} for bug in result.bugs],
    }
    if outcome.call == "dry-run" and result.changed:
        told["diff"] = file_diff(result, result.path).decode(result.encoding, "replace")
    return told


def _changed(outcome: Outcome, result: FileResult, entries: list[Entry]) -> bool:
    if outcome.call == "apply":
        return result.path in outcome.written
    if outcome.call == "verify-only":  # it makes no fix
        return any(entry.status == "fixable" for entry in entries)
    return result.changed


_SAID = ("code", "name", "message", "line", "column", "end_line", "end_column", "applicability", "severity")


def _finding(entry: Entry) -> dict[str, Any]:
    item = entry.reported
    return {
        **{name: getattr(item, name) for name in _SAID},
        **{name: getattr(item, name) or None for name in ("assumption", "strategy", "reached")},
        "status": entry.status,
        "explain": f"fix-compile rules {item.code}",
        "page": page(item.code),
    }
