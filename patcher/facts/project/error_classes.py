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
        return [last if self._is_builtin(b, last := b.rpartition(".")[2]) else b for b in summary.bases]

    def _is_builtin(self, name: str, last: str) -> bool:
        """Whether ``name`` is what Python calls ``last``, and nothing that its module binds."""
        module = name.rpartition(".")[0]
        here = self.project.summaries_of(module)
        if not here or self.project.known_class(name) is not None or last in self._assigned(module):
            return False
        unseen = any(s.starred for s in here) and last in self._named
        return isinstance(getattr(builtins, last, None), type) and not unseen

    def _own(self, name: str, depth: int = 8) -> str | None:
        """The class of the project that ``name`` is, also where a package hands it on; None where that is not known."""
        module, _, last = name.rpartition(".")
        if last in self._assigned(module):  # another name for something, or what the class became
            return None
        if self.project.known_class(name) is not None:
            return name
        here = self.project.summaries_of(module)
        brought = {i for s in here for i in s.imports if i.rpartition(".")[2] == last and i != name}
        if len(brought) == 1 and depth:
            return self._own(brought.pop(), depth - 1)
        top = name.partition(".")[0]
        same = [c for c in self._named.get(last, ()) if c.startswith(f"{top}.")] if module else []
        told = not here or any(s.starred for s in here)
        return same[0] if told and not brought and len(same) == 1 else None

    def _assigned(self, module: str) -> frozenset[str]:
        """The names that assignments at the top level of ``module`` bind."""
        return frozenset(name for s in self.project.summaries_of(module) for name, _ in s.made)

    @cached_property
    def _named(self) -> dict[str, list[str]]:
        """The last part of a dotted class -> all that end with it."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, _ in self.project.classes():
            found[name.rpartition(".")[2]].append(name)
        return dict(found)
