"""What happens to an attribute, or to what it holds: one entry of the index."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class How(enum.Enum):
    """What happens: it is ``SET`` anew, ``WRITTEN`` into, something ``WITHIN`` it is changed, or it ``GOES`` on."""

    SET = "sets"
    WRITTEN = "writes into"
    WITHIN = "changes something in"
    GOES = "hands on"


@dataclass(frozen=True)
class Touch:
    """What happens to ``place`` in ``inside``, a function, at ``line``.

    ``owners``: dotted classes of the object whose attribute it is; none when that is not known. ``early``: an
    initialiser does it to its own instance. ``listed``: the summary of its class has it. ``to``: where it goes: a
    place, of one of ``to_owners``, or what a dotted class is made with, as "class[" ("<": ``inside`` reads the global).
    """

    place: str
    how: How
    owners: tuple[str, ...] = ()
    inside: str = ""
    line: int = 0
    early: bool = False
    listed: bool = False
    to: str = ""
    to_owners: tuple[str, ...] = ()
