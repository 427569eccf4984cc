"""What a run has seen of an expression, as a value: where source tells less."""

from __future__ import annotations

from dataclasses import replace

from patcher.facts.values.operations import dtype_named
from patcher.facts.values.types import ONE, OTHER, Kind, Rank, Shape, Token, Value, python, tensor
from patcher.measuring.observed import Observed

_PYTHON = dict.fromkeys(("list", "tuple", "dict", "set"), "container") | {"None": "none"}
_PYTHON |= {kind: kind for kind in ("int", "float", "bool", "str")}


def refined(value: Value, seen: Observed | None) -> Value:
    """``value``, which source tells, with what a run has seen beside it; source is believed where it tells all."""
    if seen is None or not (value.kind is Kind.UNKNOWN or value.is_tensor):
        return value
    if value.is_tensor and seen.is_tensor:
        now = _tensor(seen)
        known = value.dtype is not None and isinstance(value.dtype.which, str)
        return replace(
            value,
            rank=now.rank or value.rank,
            dtype=value.dtype if known else now.dtype,
            shape=now.shape or value.shape,
        )
    if value.is_tensor:
        return value
    if seen.is_tensor:
        return _tensor(seen)
    (kind, *others) = seen.kinds
    if others or kind not in {*_PYTHON, "module"}:
        return value
    return Value(Kind.MODULE) if kind == "module" else python(_PYTHON[kind], data=value.data)


def _tensor(seen: Observed) -> Value:
    rank = seen.rank
    found = {dtype_named(name) or OTHER for name in seen.dtypes}
    dtype = found.pop() if len(found) == 1 else OTHER
    return tensor(None if rank is None else Rank(None, rank), dtype, None if rank is None else _shape(seen))


def _shape(seen: Observed) -> Shape:
    """Sizes that took the same values, one after the other, are taken for one and the same."""
    sizes = zip(*seen.shapes, strict=True)
    return Shape(None, 0, tuple(ONE if set(size) == {1} else Token("seen", size) for size in sizes))
