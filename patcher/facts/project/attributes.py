"""Who else sets an attribute, or writes into the object that it holds, anywhere in the project: one answer for all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from patcher.facts.flow.kept import kept
from patcher.facts.project.touches import How, Touch

if TYPE_CHECKING:
    from patcher.facts.project.index import Project
    from patcher.facts.project.summaries import ModuleSummary

#: A place, and the classes that the object whose attribute it is may be of.
Source = tuple[str, tuple[str, ...]]
#: Methods and names whose presence in a class means that attributes come and go in ways that are not followed.
UNCANNY = frozenset(
    "__dict__ __setattr__ __delattr__ __getattribute__ __getattr__ __setstate__ __getstate__ __reduce__ __reduce_ex__ "
    "__deepcopy__ __copy__ __new__ __slots__ vars".split()
)


@dataclass(frozen=True)
class Found:
    """A touch of ``attribute``, directly or where its object ends up, and the module that does it."""

    attribute: str
    touch: Touch
    module: str

    @property
    def told(self) -> str:
        """What happens, for a message."""
        t = self.touch
        return f"`{t.inside.rpartition('.')[2] or self.module}` in {self.module} {t.how.value} `{self.attribute}`"


class Attributes:
    """Answers for one index over the project. Code far away that names no attribute is not taken to mean this one:

    computed names, sweeps over all buffers and what is handed on count in the folder of the class, in what imports its
    module, and where the object is known to be of the class or of one that shares instances with it.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._at: defaultdict[str, list[tuple[ModuleSummary, Touch]]] = defaultdict(list)
        self._patterns: list[tuple[ModuleSummary, Touch]] = []
        self._folders = {s.path: PurePath(s.path).parent for s in project.modules.values()}
        for s in project.modules.values():
            for t in s.touches:
                pattern = "*" in t.place and t.place[0] != "~"
                (self._patterns if pattern else self._at[t.place]).append((s, t))

    # --- questions --------------------------------------------------------------------------------------------------

    def touched(self, cls: str, attribute: str, hows: Iterable[How]) -> Iterator[Found]:
        """What happens to ``attribute`` of instances of the dotted class, besides what its own methods assign.

        ``hows`` may hold ``SET``, ``WRITTEN`` and ``WITHIN``.
        """
        wanted = set(hows)
        family, unknown = self.project.family(cls)
        ours = family | unknown | {cls}
        home = self._home(cls)
        named = [(s, t, True) for s, t in self._at.get(attribute, ())]
        for s, t, direct in (*named, *((s, t, False) for s, t in self._patterns if may_be(t.place, attribute))):
            known = self._known(t.owners)
            if known and not known & ours:
                continue
            if not known and (not direct or t.how is How.GOES) and not self._near(s, home, cls):
                continue
            if t.how in wanted and not (
                t.how is How.SET and t.listed and direct and cls in known and t.inside.startswith(f"{cls}.")
            ):
                yield Found(attribute, t, s.module)

    def reasons(self, cls: str, attribute: str) -> Iterator[str]:
        """Why ``attribute`` may be another than what the class itself makes it, as far as the project can be seen.

        Classes that share instances with it set it too, or make them without its constructor; code outside sets it, or
        runs a method that reads it for objects of other classes.
        """
        below = {child for child, _ in self.project.subclasses(cls)}
        for c in sorted(self.project.family(cls)[0]):
            summary = self.project.known_class(c)
            assert summary is not None
            last = c.rpartition(".")[2]
            if summary.methods & UNCANNY:
                yield f"`{last}` has its own ways with attributes"
            if c != cls and attribute in summary.stores | summary.init_stores | summary.methods | summary.declared:
                yield f"`{last}` has a `{attribute}` as well"
            start = self.project.function(f"{c}.__init__")
            if c in below and start is not None:
                calls = {m for m in start.mentions if m.endswith(".__init__") and not m.startswith("torch.")}
                if not calls:
                    yield f"`{last}.__init__` does not call that of `{cls.rpartition('.')[2]}`"
        for found in self.touched(cls, attribute, (How.SET,)):
            yield found.told

    def changed(self, place: str) -> bool:
        """Whether something sets or changes ``place`` ("name", or "~name" for a global) of any object that lives."""
        return any(t.how is not How.GOES and not t.early for _, t in self._at.get(place, ()))

    def put(self, attribute: str) -> list[str] | None:
        """The functions that code puts in the place of ``attribute`` of what is not its own; None: something else, too.

        Only what a name of the same module stands for, at its top level, counts as a function.
        """
        found = []
        for s, t in self._at.get(attribute, ()):
            if t.how is not How.SET:
                continue
            given = [u for u in s.touches if u.how is How.GOES and u.to == attribute and u.line == t.line]
            names = [f"{s.module}.{u.place[1:]}" for u in given if u.place.startswith("~")]
            if len(given) != 1 or len(names) != 1 or self.project.function(names[0]) is None:
                return None
            found += names
        setting = {m.module for m in self.project.modules.values() if attribute in m.foreign_stores}
        return found if setting <= {name.rpartition(".")[0] for name in found} else None

    def computed(self, cls: str, attribute: str, any_owner: bool = False) -> Iterator[Found]:
        """Where an attribute whose name is computed, and may be ``attribute``, is set near the dotted class.

        ``any_owner``: of whatever object, not only of instances of the class.
        """
        if not any_owner:
            yield from (f for f in self.touched(cls, attribute, (How.SET,)) if "*" in f.touch.place)
            return
        home = self._home(cls)
        for s, t in self._patterns:
            if t.how is How.SET and may_be(t.place, attribute) and self._near(s, home, cls):
                yield Found(attribute, t, s.module)

    def holders(self, classes: Iterable[str]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """What keeps objects of these dotted classes: a module, an attribute there, and the classes whose it is.

        "~name" is a global that compiled code reads. A class is known by its last name where it is made, and annotated.
        """
        stack = [(f"{c.rpartition('.')[2]}()", "") for c in classes]
        seen = set(stack)
        while stack:
            place, home = stack.pop()
            if place[0] == "~" and self._read_elsewhere(f"{home}.{place[1:]}"):
                yield home, place, ()
            for s, t in (*self._at.get(place, ()), *self._at.get(f"{place}[]", ())):
                if t.how is not How.GOES or (place[0] == "~" and not s.sees(home, place[1:])):
                    continue
                to = t.to.removesuffix("[]")
                if to == "<" and self.project.reached(t.inside):
                    yield home, place, ()
                elif to.endswith("["):  # what an object is made with, it may keep
                    last = to[:-1].rpartition(".")[2]
                    yield from ((s.module, last, (c,)) for c in self._by_last.get(last, ()))
                elif to[0] not in "<~" and "(" not in to:
                    yield s.module, to, t.to_owners
                elif (end := (to, s.module if to[0] == "~" else "")) not in seen and to != "<":
                    seen.add(end)
                    stack.append(end)

    def _read_elsewhere(self, name: str) -> bool:
        """Whether compiled code that imports the dotted global reads it."""
        found = (f for f, s in self.project.functions() if any(f"{m}.".startswith(f"{name}.") for m in s.mentions))
        return any(self.project.reached(f) for f in found if not f.startswith(f"{name.rpartition('.')[0]}."))

    # --- where it goes ----------------------------------------------------------------------------------------------

    def _known(self, owners: tuple[str, ...]) -> set[str]:
        """``owners``, when all of them are classes that are known to be such."""
        sure = all(self.project.known_class(o) is not None or o.startswith("torch.nn.") for o in owners)
        return set(owners) if sure else set()

    @kept
    def _home(self, cls: str) -> ModuleSummary | None:
        packages = [m for m in self.project.modules.values() if cls.startswith(f"{m.module}.")]
        return max(packages, key=lambda m: len(m.module), default=None)

    def _near(self, s: ModuleSummary, home: ModuleSummary | None, cls: str) -> bool:
        """Whether code of ``s`` may mean instances of the class without naming anything of it."""
        if home is None or s is home or self._folders[s.path] == self._folders[home.path]:
            return True
        last = cls.rpartition(".")[2]
        return any(home.module in (i, i.rpartition(".")[0]) or i.rpartition(".")[2] == last for i in s.imports)

    @cached_property
    def _by_last(self) -> dict[str, list[str]]:
        """The classes of the project by the last part of their names."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for c, _ in self.project.classes():
            found[c.rpartition(".")[2]].append(c)
        return found


def may_be(pattern: str, name: str) -> bool:
    """Whether a name of that pattern ("*" for what is not known) may be ``name``."""
    start, star, rest = pattern.partition("*")
    return name == pattern if not star else name.startswith(start) and name.endswith(rest.rpartition("*")[2])
