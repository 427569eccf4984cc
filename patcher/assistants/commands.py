"""From what an assistant asks to a command line of this tool, and from what that says to an answer. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: So many characters of a report are handed on: what an assistant can read at once.
_MOST = 60_000
#: What the exit status of a call says.
_MEANINGS: Mapping[str, tuple[str, str, str]] = {
    "check": ("nothing to fix safely", "there is something to fix", "something failed"),
    "diagnose": ("measured", "measured", "a case does not run, or something else failed"),
    "judge": (
        "equivalent: the change keeps results and compiles no worse, or there was nothing to judge",
        "not equivalent: the change alters results or compiles worse",
        "the case is invalid, or something failed: nothing was judged",
    ),
    "prove": ("fixes are kept, or none makes it faster", "compiling does not pay here", "something failed"),
}


@dataclass(frozen=True)
class Finished:
    """A call that has ended. ``said``: the lines that it wrote beside its report."""

    status: int
    out: str
    said: tuple[str, ...]


def check_words(paths: Sequence[str], unsafe: bool) -> list[str]:
    """The call that finds."""
    return ["check", "--format", "json", *(["--unsafe"] if unsafe else []), "--", *paths]


def diff_words(paths: Sequence[str], unsafe: bool) -> list[str]:
    """The call that shows what the fixes change."""
    return ["diff", "--quiet", *(["--unsafe"] if unsafe else []), "--", *paths]


def diagnose_words(case: str, paths: Sequence[str], quick: bool, backend: str) -> list[str]:
    """The call that measures what costs."""
    return ["diagnose", "--format", "markdown", *_measuring(case, quick, backend), "--", *paths]


def judge_words(
    case: str, paths: Sequence[str], against: str, quick: bool, backend: str, tolerance: float | None
) -> list[str]:
    """The call that judges a change: what differs from ``against``, or the diff on standard input."""
    what = ["--against", against] if against else ["--patch", "-"]
    allowed = [] if tolerance is None else ["--tolerance", str(tolerance)]
    how = _measuring(case, quick, backend)
    return ["judge", "--format", "markdown", "--no-cache", *what, *allowed, *how, "--", *paths]


def prove_words(
    case: str, paths: Sequence[str], quick: bool, backend: str, unsafe: bool, write: bool, report: str
) -> list[str]:
    """The call that keeps what helps; without ``write`` it only says what that is. ``report``: a file, Markdown."""
    kept = [*(["--unsafe"] if unsafe else []), *([] if write else ["--dry-run"])]
    files = [f"./{path}" if path.startswith("-") else path for path in paths]  # behind `--` a program would stand
    return ["prove", "--output", report, *kept, *_measuring(case, quick, backend), *files]


def _measuring(case: str, quick: bool, backend: str) -> list[str]:
    backends = ["--backend", backend] if backend else []
    return ["--case", case, *(["--quick"] if quick else []), *backends]


def told(tool: str, done: Finished) -> dict[str, Any]:
    """The answer of a tool whose report is Markdown."""
    return {
        "status": done.status,
        "meaning": meaning(tool, done.status),
        "report": _cut(done.out),
        "messages": _messages(done),
    }


def checked(done: Finished, limit: int, diff: str | None) -> dict[str, Any]:
    """The answer of ``check``: the findings that cost most first, at most ``limit`` of them."""
    try:
        document = json.loads(done.out)
        listed = [_finding(file["path"], item) for file in document["files"] for item in file["findings"]]
        summary = document["summary"]
        errors = [f"{file['path']}: {file['error']}" for file in document["files"] if file["error"]]
    except (ValueError, KeyError, TypeError):
        listed, summary, errors = [], {}, []
    order = {"high": 0, "medium": 1, "low": 2}
    listed.sort(key=lambda one: order.get(one["severity"], 3))
    answer: dict[str, Any] = {
        "status": done.status,
        "meaning": meaning("check", done.status),
        "summary": summary,
        "findings": listed[:limit],
        "left_off": max(len(listed) - limit, 0),
        "messages": [*errors, *(line for line in _messages(done) if line not in errors)],
    }
    return answer if diff is None else {**answer, "diff": _cut(diff)}


def _finding(path: str, item: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("line", "column", "code", "name", "message", "applicability", "assumption", "severity", "status", "explain")
    return {"path": path, **{key: item[key] for key in kept if item.get(key) is not None}}


def meaning(tool: str, status: int) -> str:
    """What the exit status says."""
    meanings = _MEANINGS[tool]
    return meanings[status] if 0 <= status < len(meanings) else f"ended with status {status}"


def _messages(done: Finished) -> list[str]:
    return [line for line in done.said if line and not line.startswith("[")]


def _cut(text: str) -> str:
    if len(text) <= _MOST:
        return text
    return f"{text[:_MOST]}\n\n(cut: {len(text) - _MOST} characters more; the command line has all of it)"
