"""SiLU and GELU, written out."""

from __future__ import annotations

import math

from patcher.facts.operators.shapes import Shape
from patcher.facts.operators.terms import (
    Leaf,
    Op,
    Polynomial,
    Product,
    Sum,
    Term,
    factors,
    is_close,
    number,
    polynomial,
    product,
    quotient,
    subterms,
)

_HALF = math.sqrt(0.5)
_TANH = math.sqrt(2 / math.pi)
_CUBE = 0.044715
_X: Term = Leaf("x")


def silu(term: Term) -> Shape | None:
    """``x * sigmoid(x)``."""
    for gate, exponent in factors(term).powers:
        is_gate = isinstance(gate, Op) and gate.name == "sigmoid" and exponent == 1
        if is_gate and isinstance(gate, Op) and quotient(term, gate) == gate.args[0]:
            return Shape("silu", {"x": gate.args[0]})
    return None


def gelu(term: Term) -> Shape | None:
    """``x / 2 * (1 + erf(x / sqrt(2)))``, and the form with ``tanh``; with exactly these constants."""
    curved = [t for t in subterms(term) if isinstance(t, Op) and t.name in ("erf", "tanh")]
    if len(set(curved)) != 1:
        return None
    curve = curved[0]
    half: Polynomial = {frozenset(): 0.5, frozenset({(curve, 1.0)}): 0.5}
    inside: Polynomial = {frozenset({(_X, 1.0)}): _HALF}
    if curve.name == "tanh":
        inside = {frozenset({(_X, 1.0)}): _TANH, frozenset({(_X, 3.0)}): _TANH * _CUBE}
    for x in dict.fromkeys(subterms(curve.args[0])):
        rest = None if x == number(1.0) else quotient(term, x)
        if rest is None or not is_close(polynomial(rest, frozenset({curve})), half):
            continue
        if is_close(polynomial(_with(curve.args[0], x), frozenset({_X})), inside):
            return Shape("gelu", {"x": x}, form=curve.name)
    return None


def _with(term: Term, x: Term) -> Term:
    """``term`` where ``x`` is not looked into."""
    if term == x:
        return _X
    match term:
        case Product(coefficient=coefficient, powers=powers):
            return product(((_with(t, x), n) for t, n in powers), coefficient)
        case Sum(constant=constant, parts=parts):
            return Sum(constant, frozenset((_with(t, x), c) for t, c in parts))
    return term
