"""The sections of a diagnosis, in the order that they have in every format."""

from __future__ import annotations

from patcher.report.harness import CASE_MEANING, VARIANT_MEANING

SEVERITY = {
    "high": "a function falls back to eager (a dropped frame, or the recompile limit was hit), or at least"
    " half of all launches of a pass are due to it",
    "medium": "it costs launches or CUDA graphs in each pass, or compiles again more than once",
    "low": "it costs once: it compiles a little longer",
}
READING: tuple[tuple[str, str], ...] = (
    ("Severity", " ".join(f"{severity.capitalize()}: {told}." for severity, told in SEVERITY.items())),
    (
        "Launches",
        "Compiled graphs that start behind this cause, or in functions that are compiled by themselves because of it,"
        " in one settled pass over all calls. One that several causes have a part in is divided among them.",
    ),
    ("Compilation", "About how long those graphs, or repeated compilations, took; left out where that cannot be told."),
    ("Cases", CASE_MEANING),
    ("Variants", VARIANT_MEANING),
    ("Dash", "A figure that was not measured. It is not a zero."),
)


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
