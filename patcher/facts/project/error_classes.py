"""Which classes of errors are above which: builtin ones, and those of the project."""

from __future__ import annotations

import builtins
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patcher.facts.project.index import Project


class ErrorClasses:
    """Answers for one index over the project; kept. Classes of one name are not told apart."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def may_take(self, caught: str, raised: str) -> bool:
        """Whether ``except caught`` may take an error of the class ``raised``; True where that is not known."""
        last, above = caught.rpartition(".")[2], self._above(raised)
        if above is None or last in above:
            return True
        unknown = last not in self._bases and not _is_builtin(last)
        return unknown and (not _is_builtin(raised) or self.project.has(caught.partition(".")[0]))

    def _above(self, name: str) -> frozenset[str] | None:
        """The last names of the class and of all above it; None where one of them is not known."""
        found: set[str] = set()
        stack = [name.rpartition(".")[2]]
        while stack:
            last = stack.pop()
            if last in self._assigned or not (_is_builtin(last) or last in self._bases):
                return None
            if last not in found:
                found.add(last)
                stack += self._bases.get(last, ())
                found.update(c.__name__ for c in getattr(getattr(builtins, last, None), "__mro__", ()))
        return frozenset(found)

    @cached_property
    def _bases(self) -> dict[str, set[str]]:
        """The last name of each class of the project -> those of its bases."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for name, summary in self.project.classes():
            found[name.rpartition(".")[2]].update(base.rpartition(".")[2] for base in summary.bases)
        return dict(found)

    @cached_property
    def _assigned(self) -> frozenset[str]:
        """Names of classes that assignments at the top level of a module bind as well."""
        made = {name for s in self.project.modules.values() for name, _ in s.made}
        return frozenset(name for name in made if name in self._bases or _is_builtin(name))


def _is_builtin(name: str) -> bool:
    return isinstance(getattr(builtins, name, None), type)
