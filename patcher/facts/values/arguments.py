"""What the parameters of a function hold, when all of its calls are known."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.values.types import Category, DType, Kind, Rank, Shape, Token, Value, join, tensor


def relate(sites: list[dict[str, Value]], names: list[str], function: FunctionNode) -> dict[str, Value]:
    """Parameters as all call sites have them; ranks and dtypes that go together in every call stay related."""
    out: dict[str, Value] = {}
    ranked: list[str] = []
    for name in names:
        values = [site.get(name) for site in sites]
        if any(v is None or not v.is_tensor for v in values):
            found = [v for v in values if v is not None]
            if len(found) == len(values):
                value = reduce(join, found)
                if value.kind is Kind.PYTHON:
                    out[name] = replace(value, constant=None)
            continue
        tensors = [v for v in values if v is not None]
        token = Token("parameter", (function, name))
        rank, dtype = Rank(token, 0), DType(Category.UNKNOWN, token)
        categories = {v.dtype.category for v in tensors if v.dtype is not None}
        if len(categories) == 1 and all(v.dtype is not None for v in tensors):
            dtype = DType(categories.pop(), token)
        if all(v.rank is not None and v.rank == tensors[0].rank and v.rank.base is None for v in tensors):
            assert tensors[0].rank is not None
            rank = tensors[0].rank
        else:
            for other in ranked:
                gaps = {_gap(site[name], site[other]) for site in sites}
                if len(gaps) == 1 and (gap := gaps.pop()) is not None:
                    base = out[other].rank
                    assert base is not None
                    rank = base.plus(gap)
                    break
        for other in ranked:
            twin = out[other].dtype
            if twin is not None and all(_same_dtype(site[name], site[other]) for site in sites):
                dtype = DType(dtype.category, twin.which)
                break
        shape = next((s for o in ranked if (s := _related(sites, name, o, out[o].shape, token))), Shape(token))
        out[name] = tensor(rank, dtype, shape, any(v.trainable for v in tensors))
        ranked.append(name)
    return out


def _related(sites: list[dict[str, Value]], name: str, other: str, known: Shape | None, own: Token) -> Shape | None:
    """The shape of ``name`` by that of ``other``, which is ``known``, when every call passes them alike."""
    pairs = [(site[name].shape, site[other].shape) for site in sites]
    if known is None or any(mine is None or theirs is None for mine, theirs in pairs):
        return None
    if all(mine == theirs for mine, theirs in pairs):
        return known
    if all(mine is not None and mine.leading() == theirs for mine, theirs in pairs):
        return known.extended(own)
    if all(theirs is not None and mine == theirs.leading() for mine, theirs in pairs):
        return known.leading()
    return None


def _gap(a: Value, b: Value) -> int | None:
    return a.rank.minus(b.rank) if a.rank is not None and b.rank is not None else None


def _same_dtype(a: Value, b: Value) -> bool:
    return a.dtype is not None and b.dtype is not None and a.dtype.exactly(b.dtype)
