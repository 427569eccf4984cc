"""From results to text. A format is a function from an ``Outcome``; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from patcher.report.github import github
from patcher.report.json import json
from patcher.report.junit import junit
from patcher.report.outcome import Outcome
from patcher.report.sarif import sarif
from patcher.report.text import text

REPORTS: Mapping[str, Callable[[Outcome], str]] = {
    "text": text,
    "json": json,
    "github": github,
    "sarif": sarif,
    "junit": junit,
}

__all__ = ["REPORTS", "Outcome"]
