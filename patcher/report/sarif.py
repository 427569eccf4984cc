"""SARIF 2.1.0: what code scanning services and viewers read. Run it in the folder that paths are to be relative to."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from patcher.report.outcome import Entry, Outcome, remedy
from patcher.results import Overrun, Reported, RuleText, TextEdit, blamed


def fingerprints(entries: Sequence[Entry]) -> list[str]:
    """One for each entry: of its file, rule, scope and code, and which of those that are alike it is, by line."""
    alike: Counter[tuple[str, str, str, str]] = Counter()
    marks: dict[int, str] = {}
    for number in sorted(range(len(entries)), key=lambda n: (entries[n].reported.line, entries[n].reported.column)):
        entry = entries[number]
        key = (entry.path.replace("\\", "/"), entry.reported.code, entry.reported.scope, entry.reported.about)
        alike[key] += 1
        marks[number] = hashlib.sha256("\0".join((*key, str(alike[key]))).encode("utf-8", "surrogatepass")).hexdigest()
    return [marks[number][:32] for number in range(len(entries))]


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT = "fixCompileFinding/v1"
_TOLD = "A case costs more graph breaks, recompiles, graphs or skipped CUDA graphs than fix-compile.lock says."
BUDGET = RuleText("break-budget", "break-budget", _TOLD, _TOLD, _TOLD, costs=("graph break",))
_RANKS = {"high": 80.0, "medium": 50.0, "low": 20.0}


def sarif(outcome: Outcome) -> str:
    """One run with all findings that are not fixed, those that a baseline knows included.

    A warning is what a run with the same options would fix; all others are notes.
    """
    entries = [entry for entry in (*outcome.entries, *outcome.known) if entry.status != "fixed"]
    marks = fingerprints(entries)
    codes = sorted({entry.reported.code for entry in entries} | ({BUDGET.code} if outcome.overruns else set()))
    index = {code: number for number, code in enumerate(codes)}
    run = {
        "tool": {"driver": _driver(outcome, codes)},
        "invocations": [_invocation(outcome)],
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "results": [
            *(_result(outcome, entry, mark, index) for entry, mark in zip(entries, marks, strict=True)),
            *(result for overrun in outcome.overruns for result in _overrun(overrun, index)),
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _driver(outcome: Outcome, codes: list[str]) -> dict[str, Any]:
    nothing = RuleText("", "", "", "", "")
    known = {**outcome.described, BUDGET.code: BUDGET}
    rules = [_rule(code, known.get(code, nothing)) for code in codes]
    return {"name": "fix-compile", "version": outcome.version, "semanticVersion": outcome.version, "rules": rules}


def _rule(code: str, text: RuleText) -> dict[str, Any]:
    told: dict[str, Any] = {"id": code, "defaultConfiguration": {"level": "warning"}}
    if text.code:
        told |= {
            "name": text.name,
            "shortDescription": {"text": text.title},
            "fullDescription": {"text": text.title},
            "help": {"text": text.text, "markdown": text.markdown},
            "properties": {"tags": ["torch.compile", *text.costs]},
        }
    return told | ({"helpUri": text.url} if text.url else {})


def _invocation(outcome: Outcome) -> dict[str, Any]:
    notes = list(_failures(outcome))
    for file in outcome.altered:
        notes.append(_notification("warning" if outcome.strict else "note", file.path, file.told))
    invocation: dict[str, Any] = {"executionSuccessful": not outcome.failed}
    return invocation | ({"toolExecutionNotifications": notes} if notes else {})


def _failures(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for result in outcome.results:
        if error := outcome.error_of(result):
            yield _notification("error", result.path, error)
        for bug in result.bugs:
            yield _notification("error", result.path, f"{bug.code}, {blamed(bug.code)}: {bug.message}", bug.line)


def _notification(level: str, path: str, text: str, line: int = 0) -> dict[str, Any]:
    place = {"artifactLocation": _artifact(path), **({"region": {"startLine": line}} if line > 0 else {})}
    return {"level": level, "message": {"text": text}, "locations": [{"physicalLocation": place}]}


def _result(outcome: Outcome, entry: Entry, fingerprint: str, rules: Mapping[str, int]) -> dict[str, Any]:
    item = entry.reported
    reached = f" ({item.reached})" if item.reached else ""
    place = {"artifactLocation": _artifact(entry.path), "region": _region(item)}
    scope = [{"fullyQualifiedName": item.scope}] if item.scope else []
    told: dict[str, Any] = {
        "ruleId": item.code,
        "ruleIndex": rules[item.code],
        "level": "warning" if entry.status == "fixable" else "note",
        "message": {"text": f"{item.message}{reached}\n{remedy(entry)}"},
        "locations": [{"physicalLocation": place, **({"logicalLocations": scope} if scope else {})}],
        "partialFingerprints": {_FINGERPRINT: fingerprint},
        "rank": _RANKS[item.severity],
        "properties": {"severity": item.severity, "applicability": item.applicability},
    }
    if outcome.baseline:
        told["baselineState"] = "unchanged" if item.known else "new"
    return told | ({"fixes": [_fix(entry.path, item)]} if item.edits else {})


def _overrun(overrun: Overrun, rules: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for where, reason in overrun.places or (("", ""),):
        file, _, line = where.rpartition(":")
        told: dict[str, Any] = {"ruleId": BUDGET.code, "ruleIndex": rules[BUDGET.code], "level": "error"}
        told["message"] = {"text": f"{overrun.told}\n{reason}".rstrip()}
        known = bool(file) and line.isdigit()  # services show no result that has no place
        place = {"artifactLocation": _artifact(file if known else "fix-compile.lock")}
        region = {"region": {"startLine": max(int(line), 1)}} if known else {}
        yield told | {"locations": [{"physicalLocation": place | region}]}


def _fix(path: str, item: Reported) -> dict[str, Any]:
    assumed = f", right only if this holds: {item.assumption}" if item.applicability == "unsafe" else ""
    strategy = f", strategy {item.strategy}" if item.strategy else ""
    changes = [{"deletedRegion": _region(edit), "insertedContent": {"text": edit.text}} for edit in item.edits]
    return {
        "description": {"text": f"{item.applicability} fix of {item.code}{strategy}{assumed}"},
        "artifactChanges": [{"artifactLocation": _artifact(path), "replacements": changes}],
    }


def _region(at: Reported | TextEdit) -> dict[str, int]:
    start = {"startLine": at.line, "startColumn": at.column}
    return {**start, "endLine": at.end_line, "endColumn": at.end_column}


def _artifact(path: str) -> Mapping[str, str]:
    """Relative to the working folder, which consumers take for the root of the sources; else the URI of the file."""
    below = os.path.relpath(path)
    if below.startswith(os.pardir):
        return {"uri": Path(path).absolute().as_uri()}
    return {"uri": quote(below.replace(os.sep, "/")), "uriBaseId": "%SRCROOT%"}
