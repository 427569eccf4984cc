"""The optimisation report for programs: the documented format of ``docs/json-schema.md``."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

from patcher.diagnose.diagnosis import CATEGORIES, SEVERITIES, Cause, CompileSite, Diagnosis, Proof
from patcher.harness.compare import Judgement
from patcher.harness.measured import Results
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
        **{name: _plain(value) for name, value in told.items()},
        "causes": [_cause(cause) for cause in diagnosis.causes],
        "sites": [_site(site) for site in diagnosis.sites],
        "measured": _measured(diagnosis.results, diagnosis.judgement),
        "proof": _proof(diagnosis.proof) if diagnosis.proof else None,
    }


def _counted(diagnosis: Diagnosis, category: str, severity: str) -> int:
    return sum((cause.category, cause.severity) == (category, severity) for cause in diagnosis.causes)


def _cause(cause: Cause) -> dict[str, Any]:
    told: dict[str, Any] = _plain(cause)
    return {**told, "code": [{"line": line, "text": text} for line, text in cause.code]}


def _site(site: CompileSite) -> dict[str, Any]:
    told: dict[str, Any] = _plain(site)
    return {**told, "arguments": [{"name": name, "value": value} for name, value in site.arguments]}


def _proof(proof: Proof) -> dict[str, Any]:
    told: dict[str, Any] = _plain(dataclasses.replace(proof, results=None, judgement=None))
    del told["results"], told["judgement"]
    return {**told, "measured": _measured(proof.results, proof.judgement)}


def _measured(results: Results | None, judgement: Judgement | None) -> dict[str, Any] | None:
    """As ``--test --format json`` tells it, but for the number of the schema."""
    if results is None:
        return None
    return {
        "results": _plain(results.document),
        "verdicts": _plain(judgement.verdicts) if judgement else [],
        "unexercised": _plain(judgement.unexercised) if judgement else [],
        "equivalent": judgement.equivalent if judgement else None,
    }


def _plain(value: Any) -> Any:
    """As JSON has it, which knows no NaN and no infinity."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
