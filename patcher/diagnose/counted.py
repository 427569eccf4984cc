"""What is counted before anything is timed: breaks and recompiles, with a backend that generates no code.

They come about while Dynamo traces, so that they are known after seconds. Inductor shows some things only itself:
CUDA graphs that are skipped, guards of its own, and what does not trace backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from patcher.diagnose.bench import State
from patcher.diagnose.describe import titled
from patcher.diagnose.diagnosis import SEVERITIES
from patcher.diagnose.events import Seen
from patcher.diagnose.groups import Group, Key, groups, settled_launches, severity
from patcher.diagnose.places import Places
from patcher.diagnose.relations import Found, related
from patcher.harness import plan
from patcher.harness.measured import CaseResult, Figures
from patcher.rule import Cost
from patcher.words import many

BACKEND = "eager"
_SHOWN = 8
_START_SECONDS, _OPERATOR_SECONDS = 6.0, 0.17  # of a process that compiles with inductor, on two cores of a server


@dataclass(frozen=True)
class Rules:
    """What the rules find in the original source, and what each of them says that it costs."""

    found: Sequence[Found]
    costs: Mapping[str, tuple[Cost, ...]]


def counting(options: plan.Options) -> plan.Options:
    """How to count: in the first mode, the original twice."""
    once = replace(options, modes=options.modes[:1], trace="", probes=())
    return replace(once, backend=BACKEND, counting=True, repeat=True)


def with_missing(seen: Sequence[Seen], counted: Sequence[Seen]) -> tuple[Seen, ...]:
    """What was seen, and of the cases that did not come to their end what was counted."""
    known = {one.case for one in seen}
    return (*seen, *(one for one in counted if one.case not in known))


def first_report(state: State, rules: Rules, places: Places) -> tuple[str, ...]:
    """The lines that are there first: how many causes, the gravest with their places, and how long the rest takes."""
    if not state.before:
        return ()
    causes, launches = groups(state.before, places), settled_launches(state.before)
    counts = [one.figures.counts for one in state.before]
    breaks, recompiles = sum(c.breaks for c in counts), sum(c.recompiles for c in counts)
    sums = f"{many(breaks, 'break')}, {many(recompiles, 'recompile')}"
    told = [f"{many(len(causes), 'cause')}, counted with the backend {BACKEND}: {sums}"]
    after = {group.key for group in groups(state.after, places)} if len(state.after) == len(state.before) else None
    grave = sorted(causes, key=lambda group: SEVERITIES.index(severity(group, launches)))
    for group in grave[:_SHOWN]:
        codes = sorted({found.reported.code for found in related(group, rules.found, rules.costs, places)})
        becomes = "remains" if after is None or group.key in after else "goes"
        fate = "" if after is None else f"; {becomes} with all fixes in"
        more = f" {', '.join(codes)}" if codes else ""
        told.append(f"  {severity(group, launches):<6}  {titled(group, places)}{more}{fate}")
    if len(causes) > _SHOWN:
        told.append(f"  and {len(causes) - _SHOWN} more")
    return tuple(told)


def remaining(state: State, options: plan.Options) -> str:
    """About how long it takes to compile the same with ``options`` and to time it, in one line."""
    compiled = [one.figures for one in (*state.before, *state.after)]
    graphs = many(sum(figures.counts.graphs for figures in compiled) * len(options.modes), "graph")
    seconds = sum(_START_SECONDS + _OPERATOR_SECONDS * _operators(figures) for figures in compiled) * len(options.modes)
    how_long = f", about {_rounded(seconds)}" if options.backend == "inductor" else ""
    then = ", then the diagnostics" if options.probes else ""
    return f"now {options.backend} compiles {graphs} for the times{how_long}{then}"


def differing(
    case: CaseResult, mode: str, count: Callable[[Figures], Mapping[Key, Group]]
) -> list[tuple[Group, int, int]]:
    """What a second run of the original did otherwise than the first: how often in either."""
    first, again = case.variant("original", "compiled", mode).figures, case.repeated.figures if case.repeated else None
    if first is None or again is None:
        return []
    once, twice = count(first), count(again)
    told = []
    for key in dict.fromkeys((*once, *twice)):
        group = once.get(key) or twice[key]
        numbers = [g.events_in_all if g else 0 for g in (once.get(key), twice.get(key))]
        if numbers[0] != numbers[1]:
            told.append((group, numbers[0], numbers[1]))
    return told


def _operators(figures: Figures) -> float:
    """Those in all graphs that were compiled, about."""
    return sum(one.graphs * one.operators / max(one.launches, 1) for one in figures.origins)


def _rounded(seconds: float) -> str:
    return f"{10 * math.ceil(seconds / 10)} s" if seconds < 100 else f"{math.ceil(seconds / 60)} min"
