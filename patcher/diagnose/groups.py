"""Events to causes: what belongs together, where it is in the source, and what it costs in launches."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

from patcher.diagnose.diagnosis import Category, Impact, Severity
from patcher.diagnose.events import RESUMED, Event, Seen
from patcher.diagnose.places import Place, Places
from patcher.harness.measured import Origin
from patcher.words import COUNTED

_LISTED = 3

About = Literal[
    "size", "stride", "length", "value", "type", "dtype", "device", "rank", "requires_grad", "object", "other"
]

_LOCAL = re.compile(r"L\['(\w+)'\]")
_LAYOUT = re.compile(r"tensor '(.+?)' (size|stride) mismatch at index (\d+)\. expected (\S+), actual (\S+)")
_PROPERTY = re.compile(r"tensor '(.+?)' (dtype|device|rank|requires_grad)\b.*? mismatch")
_SIZE_CALL = re.compile(r"([\w.\[\]']+)\.size\(\)\[(\d+)\]")
_LENGTH = re.compile(r"len\(([^()]+)\) *[=!<>]=? *\d+")
_VALUE = re.compile(r"^([A-Za-z_][^=<>!]*?) *(?:==|!=|<=|>=|<|>) *(?:-?[\d.]+|True|False|'[^']*')")
_DELETED = re.compile(r"Cache line invalidated because .+ got deallocated")
_TYPE = re.compile(r"^___check_(?:type_id|obj_id)\(([^,]+),|^(\S+) is (?:not )?None|^expected type of '(.+?)' to be")


@dataclass(frozen=True)
class Guard:
    """``subject``: the tensor, list or expression, as the source spells it. ``dim``: of a size or stride.

    ``one``: whether the size 1 was expected or met.
    """

    about: About
    subject: str
    dim: int | None = None
    one: bool = False

    @property
    def told(self) -> str:
        """For a title: ``the size of `x` (dim 0)``."""
        if self.about in ("size", "stride"):
            return f"the {self.about} of `{self.subject}` (dim {self.dim})"
        if self.about == "length":
            return f"the number of items in `{self.subject}`"
        if self.about == "object":
            return "an object that the compiled code refers to was deleted"
        return f"the {self.about} of `{self.subject}`" if self.about != "other" else f"`{self.subject}`"


def told(guards: Sequence[Guard]) -> str:
    """For a title, of what was compiled again for any of them: ``the sizes of `x` (dims 0, 1) and `y` (dim 1)``."""
    guards = [guard for guard in guards if "___" not in guard.subject] or guards  # what Dynamo keeps between two frames
    subjects = dict.fromkeys(guard.subject for guard in guards)
    if guards[0].about not in ("size", "stride") or len({(guard.subject, guard.dim) for guard in guards}) == 1:
        return guards[0].told
    parts = []
    for subject in subjects:
        dims = sorted({g.dim for g in guards if g.subject == subject and g.dim is not None})
        parts.append(f"`{subject}` (dim{'s' if len(dims) > 1 else ''} {', '.join(map(str, dims))})")
    more = f" and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    return f"the {guards[0].about}s of {' and '.join(parts[:_LISTED])}{more}"


def parsed(guard: str) -> Guard:
    """The guard that a recompile names, in Dynamo's spelling (``L['x']`` is the local ``x``)."""
    text = _LOCAL.sub(r"\1", guard.partition("  # ")[0].strip())
    if _DELETED.search(text):
        return Guard("object", "")
    if found := _LAYOUT.search(text):
        one = "1" in (found[4], found[5])
        return Guard("size" if found[2] == "size" else "stride", found[1], int(found[3]), one)
    if found := _PROPERTY.search(text):
        return Guard(cast(About, found[2]), found[1])
    if found := _LENGTH.search(text):
        return Guard("length", found[1].strip())
    if found := _SIZE_CALL.search(text):
        return Guard("size", found[1], int(found[2]), bool(re.search(r"\b[12]\b", _SIZE_CALL.sub("", text))))
    if found := _TYPE.search(text):
        return Guard("type", (found[1] or found[2] or found[3]).strip())
    if found := _VALUE.search(text):
        return Guard("value", found[1].strip())
    return Guard("other", re.sub(r"\d+", "N", text)[:120])


Key = tuple[str, ...]
_Function = tuple[str, str]  # file, name


@dataclass(frozen=True)
class Group:
    """All events of one cause. ``place``: in the files that are looked at, which need not be where it broke.

    ``guards``: of a recompile, each once. ``follows``: whether what is compiled again is compiled by itself because of
    breaks only. ``launches``, ``calls``, ``compile_seconds``: as `Impact` has them, not rounded yet.
    """

    key: Key
    category: Category
    events: tuple[Event, ...]
    place: Place | None
    guards: tuple[Guard, ...] = ()
    follows: bool = False
    launches: float = 0.0
    calls: int = 0
    compile_seconds: float | None = None

    @property
    def first(self) -> Event:
        """The event that is told about: one with PyTorch's own explanation, when there is one."""
        return next((event for event in self.events if event.explanation), self.events[0])

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases that showed it."""
        return tuple(dict.fromkeys(event.case for event in self.events))

    @property
    def events_in_all(self) -> int:
        """How often it was seen."""
        return sum(event.count for event in self.events)

    @property
    def impact(self) -> Impact:
        """What it has cost."""
        counted = {kind: sum(e.count for e in self.events if e.kind == kind) for kind in COUNTED}
        return Impact(
            **counted,
            launches=max(round(self.launches), 1) if self.launches else 0,
            calls=self.calls,
            compile_seconds=self.compile_seconds,
        )


def groups(seen: Sequence[Seen], places: Places) -> tuple[Group, ...]:
    """The causes of what was seen, those that cost most first."""
    collected: defaultdict[Key, list[Event]] = defaultdict(list)
    for one in seen:
        for event in one.events():
            collected[_key(event, places)].append(event)
    drafts = [_draft(key, tuple(events), places) for key, events in collected.items()]
    costs = _Costs(drafts, places)
    for one in seen:
        costs.add(one)
    charged = [costs.charged(draft) for draft in drafts]
    following = [group for group in charged if group.follows]
    if len(following) > 1:
        charged = [group for group in charged if not group.follows] + [_together(following)]
    return tuple(sorted(charged, key=_weight))


def severity(group: Group, all_launches: int) -> Severity:
    """How bad: high when a frame is lost to the compiler or half of all launches are its own; low when paid once.

    ``all_launches``: of one settled pass over all cases; 0 where none were counted, as in a log.
    """
    impact = group.impact
    if impact.dropped_frames or impact.limit_hits or 2 * group.launches >= max(all_launches, 1):
        return "high"
    per_pass = group.launches > 0 or impact.cudagraph_skips > 0 or (not all_launches and impact.breaks > 0)
    return "medium" if per_pass or impact.recompiles > 1 else "low"


def _key(event: Event, places: Places) -> Key:
    if event.kind in ("breaks", "dropped_frames"):
        return ("break", _blamed(event))
    if event.kind == "cudagraph_skips":
        return ("skip", re.sub(r"\d+", "N", event.reason))
    place = places.place(event.where)
    file = places.file(place.path) if place else None
    scope = file.scope(place.line) if file and place else event.function
    guard = parsed(event.reason)
    subject = "" if guard.about in ("size", "stride") else guard.subject  # several sizes change together
    part = "part" if _follows(event) else "whole"
    return ("recompile", event.where.rpartition(":")[0], scope, guard.about, subject, part)


def _follows(event: Event) -> bool:
    """Whether what is compiled again is compiled by itself only because of breaks."""
    return event.nested or event.after is not None


def _blamed(event: Event) -> str:
    """The innermost line: when it is the backend that refuses, the break itself is told of the frame's first line."""
    return event.stack[-1].partition(" in ")[0] if event.stack else event.where


def _draft(key: Key, events: tuple[Event, ...], places: Places) -> Group:
    first = next((event for event in events if event.stack), events[0])
    if key[0] == "skip":
        return Group(key, "CUDA graphs", events, places.place(first.where))
    if key[0] == "break":
        frames = [frame.partition(" in ")[0] for frame in reversed(first.stack)]
        found = (places.place(where) for where in (*frames, first.where))
        return Group(key, "graph break", events, next(filter(None, found), None))
    guards = tuple(dict.fromkeys(parsed(event.reason) for event in events))
    category: Category = "dynamic shape" if guards[0].about in ("size", "stride") else "recompilation"
    sources = [event.source for event in events if event.source]
    found = (places.place(where) for where in (*sources, first.where))
    return Group(key, category, events, next(filter(None, found), None), guards)


def _together(following: Sequence[Group]) -> Group:
    """One cause of what is compiled again only because breaks make frames of it; its time is that of the breaks."""
    events = tuple(event for group in following for event in group.events)
    guards = tuple(dict.fromkeys(guard for group in following for guard in group.guards))
    return Group(("recompile", "follows"), "recompilation", events, None, guards, True)


def _weight(group: Group) -> tuple[float, ...]:
    """For sorting: what loses frames first, then launches, then what is compiled."""
    impact = group.impact
    lost = impact.dropped_frames + impact.limit_hits
    return (-lost, -group.launches, -impact.breaks - impact.recompiles - impact.cudagraph_skips)


class _Costs:
    """Which launches of graphs, and which compilations, there would not be without which cause.

    A graph of a resumed function starts because of the break that it resumes after; one of a function that compiled
    code calls starts because something in that function, or the frame around it, could not be compiled in one go.
    """

    def __init__(self, drafts: Sequence[Group], places: Places) -> None:
        self._places = places
        self._breaks = [group for group in drafts if group.category == "graph break"]
        self._launches: defaultdict[Key, float] = defaultdict(float)
        self._seconds: dict[Key, float] = {}
        self._calls: defaultdict[Key, int] = defaultdict(int)
        self._compiled: dict[tuple[str, str], float] = {}  # case, place of a frame: seconds for one graph of it

    def add(self, seen: Seen) -> None:
        """Charge the launches of one case."""
        here = [group for group in self._breaks if seen.case in group.cases]
        for group in here:
            self._calls[group.key] += len(seen.figures.settled)
        for origin in seen.origins():
            seconds = origin.compile_seconds or 0.0
            self._compiled[seen.case, origin.where] = seconds / max(origin.graphs, 1)
            guilty = self._guilty(origin, here)
            for group in guilty:
                self._launches[group.key] += origin.launches / len(guilty)
                self._seconds[group.key] = self._seconds.get(group.key, 0.0) + seconds / len(guilty)

    def charged(self, group: Group) -> Group:
        """The group with what was charged to it."""
        seconds, follows = self._seconds.get(group.key), False
        if group.guards:
            again = [event for event in group.events if event.kind == "recompiles"]
            known = [self._compiled.get((event.case, event.where)) for event in again]
            pairs = [(event.count, each) for event, each in zip(again, known, strict=True) if each is not None]
            follows = all(map(_follows, group.events))
            seconds = sum(count * each for count, each in pairs) if pairs and not follows else None
        return replace(
            group,
            launches=self._launches[group.key],
            calls=self._calls[group.key],
            compile_seconds=None if seconds is None else round(seconds, 3),
            follows=follows,
        )

    def _guilty(self, origin: Origin, here: Sequence[Group]) -> list[Group]:
        if origin.resumed:
            return [group for group in here if origin.where in _lines(group)]
        if not origin.nested:
            return []
        own = self._function(f"{origin.where} in {origin.function}")
        inside = [group for group in here if own in map(self._function, _inner(group))]
        return inside or [group for group in here if group.impact.dropped_frames]

    def _function(self, frame: str) -> _Function:
        """The function that a frame (``file:line in name``) runs."""
        where, _, name = frame.partition(" in ")
        place = self._places.place(where)
        file = self._places.file(place.path) if place else None
        if place and file:
            return place.path, file.scope(place.line)
        resumed = RESUMED.match(name)
        return where.rpartition(":")[0], resumed[1] if resumed else name


def _inner(group: Group) -> list[str]:
    """All frames but the outermost one."""
    return [frame for event in group.events for frame in (*event.stack[1:], *event.around)]


def _lines(group: Group) -> set[str]:
    """The place of the break, and those of the calls around it: all frames resume there."""
    frames = [frame for event in group.events for frame in (*event.stack, *event.around)]
    return {frame.partition(" in ")[0] for frame in frames} | {event.where for event in group.events}


def settled_launches(seen: Sequence[Seen]) -> int:
    """Of one pass over all cases."""
    return sum(one.figures.launches for one in seen)
