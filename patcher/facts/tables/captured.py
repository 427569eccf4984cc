"""Which ways of asking for a tensor's data get into a graph, as ``docs/tables/captured.py`` has found by running them.

``captured.json`` beside this file is made by that program, never by hand: the ways with their code; version of torch ->
way -> the settings in which it was captured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

Table = Mapping[str, Mapping[str, list[str]]]

_READ = json.loads(Path(__file__).with_name("captured.json").read_text(encoding="utf-8"))
#: Way -> its code.
CODE: Mapping[str, str] = _READ["ways"]
CAPTURED: Table = _READ["torch"]
#: Version of torch -> the settings that it has and that were tried.
EXISTING: Mapping[str, list[str]] = _READ.get("settings", {})
#: What may be set alone, of all the ways in which a function was compiled.
_ALONE = frozenset({"capture_scalar_outputs", "capture_dynamic_output_shape_ops", "allow_rnn", "trace_autograd_ops"})


def taken_in_by(way: str, version: tuple[int, int]) -> frozenset[str]:
    """The settings of PyTorch each of which takes ``way`` into a graph that it ends by default, on that version.

    Of versions that were not measured, the last one before it is taken, else the first.
    """
    measured = sorted(tuple(map(int, v.split("."))) for v, ways in CAPTURED.items() if way in ways)
    if not measured:
        return frozenset()
    at = max((v for v in measured if v <= version), default=measured[0])
    settings = CAPTURED[".".join(map(str, at))][way]
    return frozenset() if "default" in settings else _ALONE.intersection(settings)
