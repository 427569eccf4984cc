"""What the user asked for, once options and configuration are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

LATEST_TORCH = (2, 13)


class Unit(NamedTuple):
    """What of a rule's work is taken or left as one: its findings in one function (or class, or ``""``: a module).

    ``path``: as the user spells it. ``scope``: the qualified name within the module.
    """

    code: str
    path: str
    scope: str


@dataclass(frozen=True)
class Varied:
    """What a run has compiled again for: a parameter of a function, as a failed guard names it.

    ``path``: of its file. ``function``: its qualified name within the module (``Net.forward``), which stays when lines
    move. ``dim``: the dimension whose size was another one; None when the number of items in a list was. ``one``:
    whether the size 1 was among them, for which Dynamo compiles apart.
    """

    path: str
    function: str
    parameter: str
    dim: int | None
    one: bool = False


@dataclass(frozen=True)
class Settings:
    """The choices that reach the engine. ``select`` and ``ignore`` hold codes, code prefixes or rule names.

    ``only``: the units that may be fixed, the findings of all others count as silenced; None: all. ``evidence``: what a
    run of the user's model has shown, for rules that cannot tell from the source. ``distrusted``: the codes of rules
    that fix nothing here, whatever they find, and why.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    strategies: Mapping[str, str] = field(default_factory=dict)
    target_torch: tuple[int, int] = LATEST_TORCH
    only: frozenset[Unit] | None = None
    evidence: tuple[Varied, ...] = ()
    distrusted: Mapping[str, str] = field(default_factory=dict)

    def wants(self, code: str, name: str) -> bool:
        """Whether the rule ``code``/``name`` takes part in this run; the longer of two matching prefixes wins."""

        def strength(patterns: tuple[str, ...]) -> int:
            if name in patterns:
                return len(code)
            return max((len(p) for p in patterns if code.startswith(p.upper())), default=-1)

        chosen = strength(self.select) if self.select else 0
        return chosen >= 0 and strength(self.ignore) < max(chosen, 1)

    def strategy(self, key: str) -> str:
        """What the user chose for ``key``; "auto" when nothing."""
        return self.strategies.get(key, "auto")
