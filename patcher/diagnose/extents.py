"""Functions in which a run breaks so often, with all that they call, that they may be better left out of graphs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from patcher.diagnose.diagnosis import Totals
from patcher.diagnose.events import Seen
from patcher.diagnose.places import Places
from patcher.measuring.observed import Observations
from patcher.settings import Extent

#: Operators that a graph needs to be worth its start, which takes as long as to run so many of them by themselves.
#: Measured for small tensors on a CPU (docs/results/graph-start.md): 4 of 256 x 256 numbers, 16 of 16 x 16.
WORTH = 8
CANDIDATES = 4  # that are told of, or measured, at a time
_FEW = 2  # graphs: to call what is left out breaks the graph around it as well

_Function = tuple[str, str]  # path, qualified name


def extents(seen: Iterable[Seen], places: Places) -> tuple[Extent, ...]:
    """The functions in which graphs are started for few operators, those first in which most graphs are.

    Not what is compiled itself, and none in which most of the operators run that graphs hold.
    """
    broken: defaultdict[_Function, set[str]] = defaultdict(set)
    graphs: Counter[_Function] = Counter()
    operators: Counter[_Function] = Counter()
    entries: set[_Function] = set()
    sites: set[str] = set()
    of_graphs = of_operators = 0
    for one in seen:
        for event in one.events():
            if event.kind not in ("breaks", "dropped_frames") or not event.stack:
                continue
            sites.add(event.where)
            entries.update(_functions(event.stack[:1], places))
            for function in _functions((*event.stack, *event.around), places):
                broken[function].add(event.where)
        for origin in one.origins():
            of_graphs, of_operators = of_graphs + origin.launches, of_operators + origin.operators
            for function in _functions((*origin.stack, f"{origin.where} in {origin.function}"), places):
                graphs[function] += origin.launches
                operators[function] += origin.operators
    found = [
        Extent(*f, len(places_), len(sites), graphs[f], of_graphs, operators[f], of_operators)
        for f, places_ in broken.items()
        if f not in entries and graphs[f] > _FEW
    ]
    small = [e for e in found if e.operators <= WORTH * e.graphs and 2 * e.operators <= of_operators]
    return tuple(sorted(small, key=lambda e: (-e.graphs, e.operators)))


def steps(paths: Iterable[str], places: Places, observed: Observations) -> tuple[Extent, ...]:
    """The functions that ran: of none more is known than that its tensor statements might be compiled by themselves."""
    found: dict[_Function, None] = {}
    for path in paths:
        if (file := places.file(path)) is not None:
            lines = sorted({span[0] for span in observed.of(file.text)})
            found.update(((path, scope), None) for line in lines if (scope := file.scope(line)))
    return tuple(Extent(*function, 0, 0, 0, 0, 0, 0) for function in found)


def pays(before: Totals, after: Totals) -> bool:
    """Whether fewer graphs start, and what is not in them any more is worth less than that."""
    saved = before.launches - after.launches
    return saved > 0 and before.operators - after.operators <= WORTH * saved


def distinct(found: Iterable[Extent]) -> tuple[Extent, ...]:
    """Without those in which just as much happens as in one that was before: it calls them, and nothing else."""
    known: dict[tuple[int, int, int], Extent] = {}
    for extent in found:
        known.setdefault((extent.breaks, extent.graphs, extent.operators), extent)
    return tuple(known.values())


def _functions(stack: Iterable[str], places: Places) -> list[_Function]:
    """Those of the files that are looked at, of frames as ``file:line in function``, each once."""
    found: dict[_Function, None] = {}
    for frame in stack:
        place = places.place(frame.partition(" in ")[0])
        file = places.file(place.path) if place else None
        if place and file and (scope := file.scope(place.line)):
            found[place.path, scope] = None
    return list(found)
