"""The sections of a diagnosis, in the order that they have in every format."""

from __future__ import annotations

TITLES: dict[str, str] = {
    "problems": "What went wrong",
    "summary": "Summary",
    "stays": "What stays, and why",
    "next": "What to do next",
    "configuration": "How the repository compiles",
    "causes": "Causes",
    "proof": "What each fix earned",
    "performance": "Performance",
    "diagnostics": "Diagnostics",
    "trace": "Trace",
    "static-only": "Found in the source, not seen in the run",
    "fine": "Fine as it is",
    "commands": "Diagnostic commands",
    "reading": "How to read it",
}

#: Where the graphs of a diagnostic are.
GRAPHS = "The graphs before and after are also files: with `-o NAME.html` in the folder `NAME.graphs` beside it."
