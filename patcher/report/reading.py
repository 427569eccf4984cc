"""How to read the figures of a diagnosis."""

from __future__ import annotations

from patcher.report.harness import CASE_MEANING, VARIANT_MEANING

READING: tuple[tuple[str, str], ...] = (
    (
        "Severity",
        "High: a function is given up and runs eagerly, or at least half of all launches are due to it."
        " Medium: it costs launches or CUDA graphs in each pass, or compiles again more than once. Low: it costs once.",
    ),
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
