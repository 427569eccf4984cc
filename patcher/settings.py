"""What the user asked for, once options and configuration are merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LATEST_TORCH = (2, 13)


@dataclass(frozen=True)
class Settings:
    """The choices that reach the engine. ``select`` and ``ignore`` hold codes, code prefixes or rule names."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    strategies: Mapping[str, str] = field(default_factory=dict)
    target_torch: tuple[int, int] = LATEST_TORCH

    def wants(self, code: str, name: str) -> bool:
        """Whether the rule ``code``/``name`` takes part in this run; the longer of two matching prefixes wins."""

        def strength(patterns: tuple[str, ...]) -> int:
            if name in patterns:
                return len(code)
            return max((len(p) for p in patterns if code.startswith(p.upper())), default=-1)

        chosen = strength(self.select) if self.select else 0
        return chosen >= 0 and strength(self.ignore) < max(chosen, 1)
