"""Reading what a diagnosis asks of the harness: all of it may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from patcher.harness.measured import Origin, ProbeResult, Recompile, ResultsError, Site, from_json

COMPILED = {
    "tree": "original",
    "kind": "compiled",
    "mode": "default",
    "status": "ok",
    "counts": dict.fromkeys(
        ("breaks", "recompiles", "graphs", "limit_hits", "dropped_frames", "cudagraph_skips"),
        1,
    ),
    "launches": 3,
    "operators": 4,
    "breaks": [{"where": "m.py:7", "reason": "no"}],
    "recompiles": [{"function": "f", "where": "m.py:3", "guard": "x == 1"}],
    "limit_hits": [],
    "dropped_frames": [],
    "cudagraph_skips": [{"where": "", "reason": "mutated inputs"}],
}


def read(variant: Mapping[str, Any] = {}, **case: Any) -> Any:
    told = {
        "name": "m",
        "tolerance": 0.1,
        "train": False,
        "device": None,
        "dtype": None,
        "variants": [{**COMPILED, **variant}],
        "comparisons": [],
        **case,
    }
    plan = {
        "tool": "t",
        "command": [],
        "modes": ["default"],
        "backend": "eager",
        "promise": "bitwise",
        "quick": True,
        "overlay": [],
    }
    document = {"schema": 1, "plan": plan, "environment": {}, "started": "", "seconds": 1, "cases": [told]}
    return from_json(document).cases[0]


def test_what_older_results_do_not_have() -> None:
    case = read()
    (variant,) = case.variants
    assert (case.repeated, case.probes) == (None, ())
    assert (variant.trace, variant.figures.origins) == ("", ())
    assert variant.figures.breaks == (Site("m.py:7", "no"),)
    assert variant.figures.recompiles == (Recompile("f", "m.py:3", "x == 1"),)


def test_details() -> None:
    more = {"explanation": "a\nb", "hints": ["c", "d"], "context": "e", "url": "https://f", "stack": ["m.py:1 in g"]}
    row = {"where": "m.py:7", "reason": "no", "count": 2, **more}
    guard = {"function": "f", "where": "m.py:3", "guard": "x == 1", "count": 5, "source": "m.py:4"}
    origin = {"where": "m.py:7", "function": "f", "resumed": True, "graphs": 1, "launches": 2, "operators": 3}
    timed = {"compile_seconds": 0.5, "seconds": None}
    rows = {"breaks": [row], "dropped_frames": [row], "recompiles": [guard], "limit_hits": [guard]}
    case = read({**rows, "origins": [{**origin, **timed}], "reused": True, "trace": "/t/1-m/default"})
    (variant,) = case.variants
    figures = variant.figures
    assert (
        figures.breaks
        == figures.dropped_frames
        == (Site("m.py:7", "no", 2, "a\nb", ("c", "d"), "e", "https://f", ("m.py:1 in g",)),)
    )
    assert figures.recompiles == figures.limit_hits == (Recompile("f", "m.py:3", "x == 1", 5, "m.py:4"),)
    assert figures.origins == (Origin("m.py:7", "f", True, False, 1, 2, 3, 0.5, None),)
    assert variant.trace == "/t/1-m/default"


def test_a_second_run() -> None:
    told = {key: value for key, value in COMPILED.items() if key not in ("tree", "kind", "mode")}
    again = read(repeated={**told, "launches": 9}).repeated
    assert (again.status, again.figures.launches, again.figures.breaks[0].where) == ("ok", 9, "m.py:7")
    again = read(repeated={"status": "timeout", "message": "did not end"}).repeated
    assert (again.status, again.figures, again.message) == ("timeout", None, "did not end")
    with pytest.raises(ResultsError, match=r"cases\[0\]\.repeated\.counts is missing"):
        read(repeated={"status": "ok"})


def test_probes() -> None:
    good = {"name": "latency", "status": "ok", "message": "", "tail": [], "seconds": 1.5, "rows": [1], "size": 2}
    bad = {"name": "ablation", "status": "exited", "message": "it ended", "tail": ["x"], "seconds": 2}
    assert read(probes=[good, bad]).probes == (
        ProbeResult("latency", "ok", seconds=1.5, figures={"rows": [1], "size": 2}),
        ProbeResult("ablation", "exited", "it ended", ("x",), 2.0),
    )
    with pytest.raises(ResultsError, match=r"cases\[0\]\.probes\[0\]\.status must be one of"):
        read(probes=[{**good, "status": "odd"}])
