"""The optimisation report for programs: the documented format of ``docs/json-schema.md``."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from patcher.diagnose.diagnosis import CATEGORIES, SEVERITIES, Cause, CompileSite, Diagnosis, Proof
from patcher.report.harness import measured, plain
from patcher.version import VERSION

SCHEMA = 1


def diagnosis_json(diagnosis: Diagnosis) -> str:
    """All of it. The fields are those of the types of the report, but for what ``_document`` names."""
    return json.dumps(_document(diagnosis), indent=2, allow_nan=False) + "\n"


def _document(diagnosis: Diagnosis) -> dict[str, Any]:
    told = {field.name: getattr(diagnosis, field.name) for field in dataclasses.fields(diagnosis)}
    del told["results"], told["judgement"]
    told["counted"] = diagnosis.counted.document if diagnosis.counted else None
    return {
        "schema": SCHEMA,
        "tool": {"name": "fix-compile", "version": VERSION},
        "summary": [
            {"category": category, **{level: _counted(diagnosis, category, level) for level in SEVERITIES}}
            for category in CATEGORIES
        ],
        **{name: plain(value) for name, value in told.items()},
        "causes": [_cause(cause) for cause in diagnosis.causes],
        "sites": [_site(site) for site in diagnosis.sites],
        "measured": measured(diagnosis.results, diagnosis.judgement) if diagnosis.results else None,
        "proof": _proof(diagnosis.proof) if diagnosis.proof else None,
    }


def _counted(diagnosis: Diagnosis, category: str, severity: str) -> int:
    return sum((cause.category, cause.severity) == (category, severity) for cause in diagnosis.causes)


def _cause(cause: Cause) -> dict[str, Any]:
    told: dict[str, Any] = plain(cause)
    return {**told, "code": [{"line": line, "text": text} for line, text in cause.code]}


def _site(site: CompileSite) -> dict[str, Any]:
    told: dict[str, Any] = plain(site)
    return {**told, "arguments": [{"name": name, "value": value} for name, value in site.arguments]}


def _proof(proof: Proof) -> dict[str, Any]:
    told: dict[str, Any] = plain(dataclasses.replace(proof, results=None, judgement=None))
    del told["results"], told["judgement"]
    return {**told, "measured": measured(proof.results, proof.judgement) if proof.results else None}
