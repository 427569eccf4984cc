"""The lists of repeated blocks that a model of the project has, and the one that an expression is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from patcher.facts.analysis import Analysis
from patcher.facts.project.block_lists import BlockList

_DEPTH = 3


class RepeatedBlocks(Analysis):
    """Questions about classes of the project, wherever they stand."""

    def of(self, cls: str, depth: int = _DEPTH) -> tuple[BlockList, ...]:
        """The outermost lists of an instance of the class, by their paths below it, its parts' ones among them.

        None whose attribute is filled anew outside of constructors, or by a class and by one that it inherits from.
        """
        return tuple(one for one in self._found(cls, depth) if one.cls)

    def others(self, cls: str) -> tuple[BlockList, ...]:
        """The lists of an instance whose modules are of several classes, or nobody sees of which."""
        return tuple(one for one in self._found(cls, _DEPTH) if not one.cls)

    def _found(self, cls: str, depth: int) -> Iterator[BlockList]:
        taken: set[str] = set()
        line = [c for c in self.project.above(cls) if self.project.known_class(c) is not None]
        later = {a for c in line if (summary := self.project.known_class(c)) is not None for a in summary.stores}
        for name in line:
            summary = self.project.known_class(name)
            assert summary is not None
            for one in summary.lists:
                if one.path.partition(".")[0] not in taken | later:
                    yield replace(one, cls=self._near(one.cls, name) if one.cls else "")
            for attribute, cls_of_part in summary.built if depth else ():
                part = self._near(cls_of_part, name)
                if attribute not in taken | later and part != cls and self.project.is_module_class(part):
                    yield from (replace(one, path=f"{attribute}.{one.path}") for one in self._found(part, depth - 1))
            taken |= summary.init_stores

    def _near(self, cls: str, user: str) -> str:
        """``cls`` as it is named by the class ``user``: a class of a function stands beside those that use it."""
        beside = f"{user.rpartition('.')[0]}.{cls.rpartition('.')[2]}"
        return beside if self.project.known_class(cls) is None and self.project.known_class(beside) is not None else cls
