"""A place in a patched file where a graph still breaks: how it is written, and what the tool says about it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def findings_of(path: Path | None) -> Json:
    """What ``fix-compile --verify-only --format json`` printed; nothing without a file."""
    told: Json = json.loads(path.read_text(encoding="utf-8")) if path else {}
    return told


def place(where: str) -> str:
    """A place without what is the same in all of them."""
    return re.sub(r"^(.*/site-packages/|transformers/)", "", where)


def said(findings: Json, where: str) -> str:
    """The findings whose lines hold a place: code, and why there is no fix."""
    file, _, line = place(where).rpartition(":")
    told = []
    for entry in findings.get("files", []):
        if f"/{entry['path']}".endswith(f"/{file}"):
            for finding in entry["findings"]:
                if finding["line"] <= int(line) <= finding["end_line"]:
                    told.append(f"{finding['code']}: {finding['assumption'] or finding['message']}")
    return "; ".join(dict.fromkeys(told))[:240] or ("nothing" if findings else "")
