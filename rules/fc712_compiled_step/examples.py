"""What CompiledStep rewrites, and what looks like it and stays."""

from __future__ import annotations

from patcher.rule import Example, NearMiss

INVALID: tuple[Example, ...] = ()
VALID: tuple[NearMiss, ...] = ()
