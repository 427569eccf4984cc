"""Layer norm and RMS norm over the last dimension, written out."""

from __future__ import annotations

from collections.abc import Iterator

from patcher.facts.operators.shapes import IsRow, Shape
from patcher.facts.operators.terms import (
    Leaf,
    Op,
    Product,
    Term,
    addends,
    factors,
    power,
    product,
    quotient,
    total,
    uncast,
)

_LAST = (-1,)


def rms_norm(term: Term, is_row: IsRow) -> Shape | None:
    """``x * rsqrt(mean(x ** 2) + eps)``, times a row of weights where there is one.

    ``form``: "inside" where the weight comes before a cast back or there is no cast, "outside" where the weight is
    multiplied with what was cast back to the dtype of the input, "bare" without weights.
    """
    for inner, weights in _cast_back(term):
        back = inner.given[0]
        shape = _bare_rms(inner.args[0], is_row) if isinstance(weights, Leaf) and is_row(weights) else None
        if shape is None or "weight" in shape.operands:
            continue
        x = shape.operands["x"]
        if isinstance(x, Op) and x.name == "cast" and x.given[0] == "torch.float32" and back == Op("dtype", x.args):
            return Shape("rms_norm", {**shape.operands, "x": x.args[0], "weight": weights}, "outside", shape.options)
    return _bare_rms(term, is_row)


def _cast_back(term: Term) -> Iterator[tuple[Op, Term]]:
    """What of a product of two was converted, and the other factor."""
    pairs = factors(term)
    if pairs.coefficient != 1 or len(pairs.powers) != 2 or any(n != 1 for _, n in pairs.powers):
        return
    first, second = (t for t, _ in pairs.powers)
    for inner, other in ((first, second), (second, first)):
        if isinstance(inner, Op) and inner.name == "cast":
            yield inner, other


def _bare_rms(term: Term, is_row: IsRow) -> Shape | None:
    for spread, exponent in factors(term).powers:
        if exponent != -0.5 or (found := _with_eps(spread)) is None:
            continue
        mean, eps = found
        if not isinstance(mean, Op) or mean.name != "mean" or (x := _root(mean.args[0])) is None:
            continue
        rest = quotient(term, product([(spread, exponent)]))
        for operand in dict.fromkeys((x, uncast(x))):
            weights = quotient(rest, operand) if rest is not None else None
            if weights is None or not (weights == product([]) or is_row(weights)):
                continue
            held = {"x": x, **({} if weights == product([]) else {"weight": weights})}
            return _last(mean, Shape("rms_norm", {**held, **eps[0]}, "inside" if len(held) > 1 else "bare", eps[1]))
    return None


def layer_norm(term: Term, is_row: IsRow) -> Shape | None:
    """``(x - mean(x)) / sqrt(var(x) + eps)``, times a row of weights, plus one, where they are there."""
    whole = addends(term)
    if whole.constant:
        return None
    bias = [t for t, c in whole.parts if c == 1 and is_row(t)]
    if len(whole.parts) == 1:
        return _scaled_norm(term, is_row)
    if len(whole.parts) != 2 or len(bias) != 1:
        return None
    ((scaled, coefficient),) = (pair for pair in whole.parts if pair[0] != bias[0])
    shape = _scaled_norm(scaled, is_row) if coefficient == 1 else None
    return None if shape is None else Shape(
        shape.operator, {**shape.operands, "bias": bias[0]}, shape.form, shape.options, shape.refused
    )  # fmt: skip


def _scaled_norm(term: Term, is_row: IsRow) -> Shape | None:
    for spread, exponent in factors(term).powers:
        if exponent != -0.5 or (found := _with_eps(spread)) is None:
            continue
        variance, eps = found
        rest = quotient(term, product([(spread, exponent)]))
        pairs = factors(rest).powers if rest is not None else ()
        for centred in (t for t, n in pairs if n == 1):
            if (x := _centred(centred)) is None or (mean := _is_variance(variance, x, centred)) is None:
                continue
            weights = quotient(rest, centred) if rest is not None else None
            if weights is not None and (weights == product([]) or is_row(weights)):
                held = {"x": x, **({} if weights == product([]) else {"weight": weights})}
                return _last(mean, Shape("layer_norm", {**held, **eps[0]}, "", eps[1]))
    return None


def _centred(term: Term) -> Term | None:
    """``x`` of ``x - mean(x)``."""
    parts = addends(term)
    for mean, coefficient in parts.parts:
        if coefficient == -1 and isinstance(mean, Op) and mean.name == "mean":
            rest = total([(product([]), parts.constant), *((t, c) for t, c in parts.parts if t != mean)])
            if rest == mean.args[0] or addends(rest) == addends(mean.args[0]):
                return mean.args[0]
    return None


def _is_variance(term: Term, x: Term, centred: Term) -> Op | None:
    """The reduction in ``term`` if that is the mean of the squares of what ``x`` is off its mean."""
    if isinstance(term, Op) and term.name == "var":
        return term if term.args[0] in (x, centred) and term.given[2] == 0 else None
    if isinstance(term, Op) and term.name == "mean":
        return term if term.args[0] == power(centred, 2) else None
    squares = [t for t, c in addends(term).parts if isinstance(t, Op) and t.name == "mean" and c == 1]
    for mean in squares:
        other = [(t, c) for t, c in addends(term).parts if t != mean]
        if mean.args[0] == power(x, 2) and other == [(power(Op("mean", (x,), mean.given), 2), -1.0)]:
            return mean
    return None


def _with_eps(term: Term) -> tuple[Term, tuple[dict[str, Term], dict[str, object]]] | None:
    """What an epsilon was added to, and that: an operand, or an option when it is written down."""
    whole = addends(term)
    means = [(t, c) for t, c in whole.parts if isinstance(t, Op) and t.name in ("mean", "var") and c == 1]
    if not means:
        return None
    small = [(t, c) for t, c in whole.parts if _is_small(t)]
    spread = total((t, c) for t, c in whole.parts if not _is_small(t))
    if not small:
        return spread, ({}, {"eps": whole.constant})
    return (spread, ({"eps": small[0][0]}, {})) if len(small) == 1 and small[0][1] == 1 and not whole.constant else None


def _is_small(term: Term) -> bool:
    """Whether ``term`` may be an epsilon: nothing that was computed."""
    return not isinstance(term, (Op, Product)) and not hasattr(term, "parts")


def _root(squares: Term) -> Term | None:
    """``x`` of ``x ** 2``."""
    pairs = factors(squares)
    if pairs.coefficient != 1 or any(n % 2 for _, n in pairs.powers):
        return None
    return product((t, n / 2) for t, n in (squares.powers if isinstance(squares, Product) else pairs.powers))


def _last(mean: Op, shape: Shape) -> Shape | None:
    """``shape``, refused where it is over another dimension than the last; None where that dimension is not kept."""
    dims, kept = mean.given[0], mean.given[1]
    if dims == _LAST:
        return shape if kept else None
    told = ", ".join(map(str, dims)) if isinstance(dims, tuple) else ""
    why = f"it is over dimension {told}, and `F.{shape.operator}` over the last"
    return Shape(shape.operator, shape.operands, shape.form, shape.options, why) if kept else None
