"""Which classes of errors are above which: builtin ones, and those of the project."""

from __future__ import annotations

import builtins
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.facts.project.index import Project


class ErrorClasses:
    """Answers for one index over the project; kept. A class is named as it is imported, or as a builtin one."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def may_take(self, caught: str, raised: str) -> bool:
        """Whether ``except caught`` may take an error of the class ``raised``; True where that is not known."""
        above = self.above(raised)
        builtin = getattr(builtins, caught, None)
        if isinstance(builtin, type):
            return above is None or caught in above
        if isinstance(getattr(builtins, raised, None), type):  # no class of somebody's own is above a builtin one,
            return self._own(caught) is None and self.project.has(caught.partition(".")[0])  # but a name is more
        own = self._own(caught)
        return above is None or own is None or own in above

    def above(self, name: str) -> frozenset[str] | None:
        """The class itself and all above it; None where one of them is not known."""
        found: set[str] = set()
        stack = [name]
        while stack:
            one = stack.pop()
            builtin = getattr(builtins, one, None)
            if isinstance(builtin, type):
                found.update(c.__name__ for c in builtin.__mro__)
                continue
            own = self._own(one)
            if own in found:
                continue
            if own is None:
                return None
            found.add(own)
            stack += self._bases(own)
        return frozenset(found)

    def _bases(self, own: str) -> list[str]:
        """The bases of a class of the project; a builtin one, which has the module before it there, by its name."""
        summary = self.project.known_class(own)
        assert summary is not None
        module = own.rpartition(".")[0]
        builtin = {f"{module}.{n}": n for n, what in vars(builtins).items() if isinstance(what, type)}
        return [builtin[b] if b in builtin and builtin[b] not in self._named else b for b in summary.bases]

    def _own(self, name: str) -> str | None:
        """The class of the project that ``name`` is, also where a package hands it on: the only one of that name."""
        if self.project.known_class(name) is not None:
            return name
        top, _, rest = name.partition(".")
        same = [c for c in self._named.get(rest.rpartition(".")[2], ()) if c.startswith(f"{top}.")] if rest else []
        return same[0] if len(same) == 1 else None

    @cached_property
    def _named(self) -> dict[str, list[str]]:
        """The last part of a dotted class -> all that end with it."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, _ in self.project.classes():
            found[name.rpartition(".")[2]].append(name)
        return dict(found)
