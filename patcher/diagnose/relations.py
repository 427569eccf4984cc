"""Which findings of the rules explain which causes, and which fixes only go together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from patcher.diagnose.groups import Group, Guard, parsed
from patcher.diagnose.places import Place, Places
from patcher.results import FileResult, Reported
from patcher.rule import BOTH_SEEN, Cost
from patcher.settings import Unit, Varied

#: The rule that leaves functions out of graphs, work and all: when nothing else helps any more.
ZONE = "FC207"
#: The rule that compiles the tensor statements of a function in its place.
STEP = "FC712"
_OF_A_CLASS = "FC3"  # caches and mutated state: what one method is given, the others have to follow
#: What grows with each call is found where it is joined; the call that is compiled again is of whoever is given it.
_GROWS = "FC305"
_KEPT = (_OF_A_CLASS, "FC205")  # about what an object keeps: any of its methods may break on it


@dataclass(frozen=True)
class Found:
    """A finding in the original text of a file."""

    path: str
    reported: Reported

    @property
    def unit(self) -> Unit:
        """What is taken or left with it."""
        return Unit(self.reported.code, self.path, self.reported.scope)


@dataclass(frozen=True)
class Bundle:
    """Fixes that are tried together: those of one rule in one function, or of one family in one class.

    ``key``: what tells it from others. ``label``: for people (``FC502 in Attention.forward``). ``where``: the places of
    its findings. ``proven``: source alone says that each of them is right. ``compared``: of one of them only changed
    inputs say so.
    """

    key: tuple[str, str, str]
    label: str
    units: frozenset[Unit]
    where: tuple[str, ...] = ()
    proven: bool = True
    compared: bool = False


def findings(results: Iterable[FileResult]) -> tuple[Found, ...]:
    """What was found in the original texts, without what comments silence."""
    return tuple(
        Found(result.path, item)
        for result in results
        if result.patch
        for item in result.patch.found
        if not item.suppressed
    )


def bundles(results: Iterable[FileResult], places: Places) -> tuple[Bundle, ...]:
    """What the fixes that were made consist of, in the order of files and lines."""
    made: dict[tuple[str, str, str], list[Found]] = {}
    for result in results:
        known = {(f.code, f.scope): f.line for f in reversed(result.patch.found)} if result.patch else {}
        for item in sorted(
            result.patch.fixed if result.patch else (), key=lambda f: known.get((f.code, f.scope), f.line)
        ):
            found = Found(result.path, item)
            made.setdefault(_together(found, places), []).append(found)
    return tuple(_bundle(key, items, results, places) for key, items in made.items())


def related(
    group: Group, found: Sequence[Found], costs: Mapping[str, tuple[Cost, ...]], places: Places
) -> tuple[Found, ...]:
    """The findings that may be behind a cause, of rules that are about such causes.

    Those on its line, and those whose fix rewrites it; else those in its statement; else those of its class, or of its
    function when that is all that a recompile tells; else what grows, for a size of a part of an argument; else those
    on the lines that called it; else those that name what PyTorch's message names; else all of them, where what was
    compiled again is a wrapper of somebody else's, which does not tell what is in it.
    """
    fitting = [f for f in found if group.category in costs.get(f.reported.code, ())]
    if group.key[0] == "skip":
        return tuple(fitting)
    if group.follows and group.place is None:
        return ()
    own, calls = _places_of(group, places)
    steps: tuple[Callable[[Found], bool], ...] = (
        lambda f: any(_on(f, place, places) or _rewrites(f, place) for place in own),
        lambda f: any(_in_statement(f, place, places) for place in own),
        lambda f: any(_near(f, place, places, group) for place in own),
        lambda f: f.reported.code == _GROWS and any(map(_is_of_a_part, group.guards)),
        lambda f: _named(f, group) and any(_within(f, place, places) for place in own),
        lambda f: any(_on(f, place, places) for place in calls),
        lambda f: _named(f, group),
        lambda _: bool(group.guards) and not own and not calls,
    )
    return next((tuple(fit) for step in steps if (fit := [f for f in fitting if step(f)])), ())


def _places_of(group: Group, places: Places) -> tuple[list[Place], list[Place]]:
    """Where a cause is, and the calls that led there, the innermost first."""
    both = [where for event in group.events for where in (event.source, event.where)]
    around = dict.fromkeys(frame for event in group.events for frame in reversed(event.stack))
    calls = (places.place(frame.partition(" in ")[0]) for frame in around)
    return list(filter(None, [group.place, *map(places.place, both)])), list(filter(None, calls))


def with_zones(
    group: Group, found: Sequence[Found], costs: Mapping[str, tuple[Cost, ...]], places: Places
) -> tuple[Found, ...]:
    """As `related`; where nothing that it tells of has a fix, also the functions that are better left out of graphs."""
    usual = related(group, [f for f in found if f.reported.code != ZONE], costs, places)
    if any(f.reported.applicability != "display-only" for f in usual):
        return usual
    frames = {frame.partition(" in ")[0] for event in group.events for frame in (*event.stack, *event.around)}
    inside = [p for p in map(places.place, sorted(frames)) if p is not None]
    zones = [f for f in found if f.reported.code == ZONE and any(_within(f, place, places) for place in inside)]
    return (*usual, *zones)


def evidence(found: Iterable[Group], places: Places) -> tuple[Varied, ...]:
    """What functions were compiled again for, as far as it is a parameter of theirs.

    Not of functions that are compiled by themselves only because of breaks: without those there is no such boundary.
    """
    varied = []
    for event in (event for group in found if group.guards and not group.follows for event in group.events):
        guard, place = parsed(event.reason), places.place(event.where)
        file = places.file(place.path) if place else None
        name = (
            guard.subject.partition(".")[0].partition("[")[0] if guard.about == "length" else guard.subject
        )  # `batch.images`
        if place and file and guard.about in ("size", "length") and name.isidentifier():
            varied.append(Varied(place.path, file.scope(place.line), name, guard.dim, guard.one))
    return tuple(dict.fromkeys(varied))


def traced(found: Iterable[Group], places: Places) -> frozenset[tuple[str, str]]:
    """The functions that were compiled, as paths and qualified names: where something happened, and what called it."""
    events = [event for group in found for event in group.events]
    frames = {frame.partition(" in ")[0] for event in events for frame in (*event.stack, *event.around)}
    known = filter(None, map(places.place, sorted(frames | {event.where for event in events if event.where})))
    files = [(place, places.file(place.path)) for place in known]
    named = {(place.path, file.scope(place.line)) for place, file in files if file is not None}
    return frozenset((path, scope) for path, scope in named if scope)


def _on(found: Found, place: Place, places: Places) -> bool:
    file = places.file(place.path)
    item = found.reported
    return found.path == place.path and bool(file and file.covers(item.line, item.end_line, place.line))


def _in_statement(found: Found, place: Place, places: Places) -> bool:
    file = places.file(place.path)
    return found.path == place.path and bool(file and found.reported.line in file.statement(place.line))


def _rewrites(found: Found, place: Place) -> bool:
    lines = found.reported.rewritten
    return found.path == place.path and any(first <= place.line <= last for first, last in lines)


def _near(found: Found, place: Place, places: Places, group: Group) -> bool:
    """Whether it is of the same class (state), or in the function of a recompile and speaks of no other tensor."""
    file = places.file(place.path)
    if found.path == place.path and file is not None and found.reported.code.startswith(_KEPT):
        owner = file.class_of(file.scope(place.line))
        return bool(owner) and owner == file.class_of(found.reported.scope)
    plain = {name for name in _names(found) if name.isidentifier()}
    other = group.category == "dynamic shape" and bool(plain) and not plain & {g.subject for g in group.guards}
    return bool(group.guards) and not other and _within(found, place, places)


def _is_of_a_part(guard: Guard) -> bool:
    """Whether it is the size of something in an argument; ``args`` are those of a wrapper."""
    return guard.about == "size" and "[" in guard.subject and not guard.subject.startswith("args[")


def _within(found: Found, place: Place, places: Places) -> bool:
    file = places.file(place.path)
    return found.path == place.path and file is not None and found.reported.scope == file.scope(place.line)


def _names(found: Found) -> list[str]:
    """What the finding has in backquotes."""
    return re.findall(r"`([\w.]+)`", found.reported.message)


def _named(found: Found, group: Group) -> bool:
    """Whether PyTorch speaks of an argument or attribute by a name that the finding has in backquotes."""
    names = {name.rpartition(".")[2] for name in _names(found)}
    said = {word for e in group.events for word in re.findall(r"'([\w.]+)'", f"{e.reason} {e.explanation} {e.context}")}
    return bool(names & said)


def _together(found: Found, places: Places) -> tuple[str, str, str]:
    file = places.file(found.path)
    code, scope = found.reported.code, found.reported.scope
    together = code.startswith(_OF_A_CLASS) and found.reported.strategy  # what follows one strategy for a class
    owner = file.class_of(scope) if file and together else ""
    return (_OF_A_CLASS, found.path, owner) if owner else (code, found.path, scope)


def _bundle(key: tuple[str, str, str], items: Sequence[Found], results: Iterable[FileResult], places: Places) -> Bundle:
    units = frozenset(item.unit for item in items)
    codes = tuple(sorted({item.reported.code for item in items}))
    original = [f for f in findings(results) if f.unit in units]
    where = tuple(dict.fromkeys(f"{places.shown(f.path)}:{f.reported.line}" for f in original))
    scope = f" in {key[2]}" if key[2] else f" in {places.shown(key[1])}"
    proven = all(item.reported.applicability == "safe" for item in items)
    compared = any(BOTH_SEEN in item.reported.assumption for item in items)
    return Bundle(key, f"{', '.join(codes)}{scope}", units, where or (places.shown(key[1]),), proven, compared)
