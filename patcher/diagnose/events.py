"""What a run has shown, one kind of event for all that the harness counts, in the lines of the original source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from patcher.harness.measured import CaseResult, Figures, Origin, Recompile, Site
from patcher.words import COUNTED

RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)$")


@dataclass(frozen=True)
class Event:
    """Something of a ``kind`` of `COUNTED`, seen ``count`` times in ``case``.

    ``where``: ``file:line`` of the code; of a recompile, where the function begins. ``source``: of a recompile, the
    code that put the guard there. ``function``: of a recompile, its name; ``after``: the line after which it resumes;
    ``nested``: whether compiled code called it that had broken. ``stack``: how the code got there, outermost first;
    ``around``: other frames by which it also did.
    """

    kind: str
    case: str
    where: str
    reason: str
    count: int = 1
    function: str = ""
    after: int | None = None
    source: str = ""
    nested: bool = False
    explanation: str = ""
    hints: tuple[str, ...] = ()
    context: str = ""
    url: str = ""
    stack: tuple[str, ...] = ()
    around: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A compiled variant of one case, as far as causes need it. ``lines``: original lines of a patched file's lines."""

    case: str
    figures: Figures
    lines: Mapping[str, Mapping[int, int]]

    def events(self) -> Iterator[Event]:
        """All events, with places in the original."""
        for kind in COUNTED:
            for item in getattr(self.figures, kind):
                yield self._site(kind, item) if isinstance(item, Site) else self._recompile(kind, item)

    def origins(self) -> Iterator[Origin]:
        """The frames that the launched graphs belong to, with places in the original."""
        for origin in self.figures.origins:
            stack = tuple(self._frame(frame) for frame in origin.stack)
            yield replace(origin, where=self.original(origin.where), stack=stack)

    def original(self, where: str) -> str:
        """``file:line`` of the measured text as the same of the original one."""
        file, _, line = where.rpartition(":")
        lines = self.lines.get(file)
        return f"{file}:{lines.get(int(line), int(line))}" if lines and line.isdigit() else where

    def _site(self, kind: str, site: Site) -> Event:
        return Event(
            kind,
            self.case,
            self.original(site.where),
            site.reason,
            site.count,
            explanation=site.explanation,
            hints=site.hints,
            context=site.context,
            url=site.url,
            stack=tuple(self._frame(frame) for frame in site.stack),
            around=tuple(self._frame(frame) for frame in site.around),
        )

    def _frame(self, frame: str) -> str:
        where, separator, function = frame.partition(" in ")
        return f"{self.original(where)}{separator}{function}"

    def _recompile(self, kind: str, item: Recompile) -> Event:
        resumed = RESUMED.match(item.function)
        where = self.original(item.where)
        after = int(where.rpartition(":")[2]) if resumed and where.rpartition(":")[2].isdigit() else None
        name = resumed[1] if resumed else item.function
        source = self.original(item.source) if item.source else ""
        return Event(kind, self.case, where, item.guard, item.count, name, after, source, item.nested)


def seen_in(
    case: CaseResult, tree: Literal["original", "patched"], mode: str, lines: Mapping[str, Mapping[int, int]]
) -> Seen | None:
    """The compiled variant of a case, when it came to its end."""
    figures = case.variant(tree, "compiled", mode).figures
    return None if figures is None else Seen(case.name, figures, lines if tree == "patched" else {})
