"""What a failed guard speaks of: the size of a tensor's dimension, the length of a list, a value, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast

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
