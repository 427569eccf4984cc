"""What each version of torch can be told about compiling, as ``docs/tables/knobs.py`` has found by asking it.

``knobs.json`` beside this file is made by that program, never by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

#: In the order in which they are told.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs", "lite")
#: Backends that log a warning when they are given a mode or options, and go on without.
WITHOUT_OPTIONS = frozenset({"eager", "aot_eager", "aot_eager_decomp_partition", "cudagraphs"})
_READ = json.loads(Path(__file__).with_name("knobs.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Knobs:
    """Of one version. ``asked``: that version was; else these are of another one, and a name may be missing here."""

    modes: frozenset[str]
    backends: frozenset[str]
    options: frozenset[str]
    asked: bool = True

    def lacks(self, name: str, known: frozenset[str]) -> bool:
        """Whether ``name`` is none of ``known``, which are those of this version, or looks like a misspelling."""
        return name not in known and (self.asked or meant(name, known) is not None)


KNOBS: Mapping[tuple[int, ...], Knobs] = {
    tuple(map(int, version.split("."))): Knobs(
        frozenset(read["modes"]), frozenset(read["backends"]), frozenset(read["options"])
    )
    for version, read in _READ.items()
}


def knobs_of(version: tuple[int, int]) -> Knobs:
    """Of that version of torch; of the newest one, where nobody has asked it."""
    return KNOBS[version] if version in KNOBS else replace(KNOBS[max(KNOBS)], asked=False)


def meant(name: str, known: Iterable[str]) -> str | None:
    """The one of ``known`` that ``name`` is a misspelling of, if that is plain."""
    plain = {k.lower().replace("_", "-"): k for k in sorted(known)}
    given = name.lower().replace("_", "-")
    if given in plain:
        return plain[given]
    found = get_close_matches(given, plain, n=2, cutoff=0.85)
    return plain[found[0]] if found else None
