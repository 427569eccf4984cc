"""What a run has seen of an expression, as a value: where source tells less."""

from __future__ import annotations

from dataclasses import replace

from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import (
    BOOL,
    ONE,
    OTHER,
    Category,
    DType,
    Kind,
    Rank,
    Shape,
    Token,
    Value,
    python,
    tensor,
)
from patcher.observed import Observed

_PYTHON = {"int": "int", "float": "float", "bool": "bool", "str": "str", "None": "none"}
_CONTAINERS = frozenset("list tuple dict set frozenset".split())


def refined(value: Value, seen: Observed | None) -> Value:
    """``value``, which source tells, with what a run has seen beside it; source is believed where it tells."""
    if seen is None or not (value.kind is Kind.UNKNOWN or value.is_tensor):
        return value
    if value.is_tensor and seen.is_tensor:
        now = _tensor(seen)
        known = value.dtype is not None and value.dtype.which is not None
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
    if len(seen.kinds) == 1:
        (kind,) = seen.kinds
        if kind in _PYTHON:
            return python(_PYTHON[kind], data=value.data)
        if kind in _CONTAINERS:
            return python("container", data=value.data)
        if kind == "module":
            return Value(Kind.MODULE)
    return value


def _tensor(seen: Observed) -> Value:
    rank = seen.rank
    found = {_dtype(name) for name in seen.dtypes}
    dtype = found.pop() if len(found) == 1 else OTHER
    return tensor(None if rank is None else Rank(None, rank), dtype, None if rank is None else _shape(seen))


def _shape(seen: Observed) -> Shape:
    """Sizes that took the same values, one after the other, are taken for one and the same."""
    sizes = zip(*seen.shapes, strict=True)
    return Shape(None, 0, tuple(ONE if set(size) == {1} else Token("seen", size) for size in sizes))


def _dtype(name: str) -> DType:
    if name == "torch.bool":
        return BOOL
    if name in api.FLOAT_DTYPES:
        return DType(Category.FLOAT, name)
    return DType(Category.INT, name) if name in api.INT_DTYPES else OTHER
