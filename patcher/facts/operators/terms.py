"""A normal form of tensor arithmetic: what is computed, whatever it is spelled as.

Products hold factors with exponents, sums hold addends with coefficients, in no order: ``x / sqrt(v)`` and
``v ** -0.5 * x`` are one term. Terms are equal where they compute the same of the same, rounding aside.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Union

#: How far a constant may be off to be the one that is meant: half of the last bit of single precision.
CLOSE = 6e-8
_MOST_MONOMIALS = 24


@dataclass(frozen=True, slots=True)
class Leaf:
    """What is not looked into. ``key``: equal keys stand for one and the same value. ``number``: of Python, surely."""

    key: Hashable
    number: bool = False


@dataclass(frozen=True, slots=True)
class Op:
    """``name`` of ``args``; ``given``: what else decides the result, such as the dimensions of a mean."""

    name: str
    args: tuple[Term, ...]
    given: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """``coefficient`` times all factors, each to its exponent; a number is a product without factors."""

    coefficient: float
    powers: frozenset[tuple[Term, float]]


@dataclass(frozen=True, slots=True)
class Sum:
    """``constant`` plus all addends, each times its coefficient. An addend that has a name of its own stays whole."""

    constant: float
    parts: frozenset[tuple[Term, float]]


Term = Union[Leaf, Op, Product, Sum]  # noqa: UP007 - the classes above name it before it is there
#: Coefficients by monomial: a set of atoms with their exponents.
Polynomial = dict[frozenset[tuple[Term, float]], float]


def number(value: float) -> Product:
    """A number that is written down."""
    return Product(float(value), frozenset())


def constant(term: Term) -> float | None:
    """The number that ``term`` is."""
    return term.coefficient if isinstance(term, Product) and not term.powers else None


def product(factors: Iterable[tuple[Term, float]], coefficient: float = 1.0) -> Term:
    """The product of ``factors`` with their exponents; equal ones are taken together."""
    powers: dict[Term, float] = {}
    for term, exponent in factors:
        if (
            (value := constant(term)) is not None
            and (value > 0 or exponent == int(exponent))
            and (value or exponent > 0)
        ):
            coefficient *= value**exponent
            continue
        if isinstance(term, Product) and exponent == 1:
            coefficient, term = coefficient * term.coefficient, Product(1.0, term.powers)
        term = _single(term)
        if isinstance(term, Product) and term.coefficient == 1 and len(term.powers) == 1:
            ((term, inner),) = term.powers
            exponent *= inner
        powers[term] = powers.get(term, 0.0) + exponent
    return _single(Product(coefficient, frozenset((t, n) for t, n in powers.items() if n)))


def power(term: Term, exponent: float) -> Term:
    """``term`` to a number that is written down."""
    return product([(term, exponent)])


def total(addends: Iterable[tuple[Term, float]]) -> Term:
    """The sum of ``addends`` with their coefficients; equal ones are taken together."""
    held, parts = 0.0, dict[Term, float]()
    for term, coefficient in addends:
        if (value := constant(term)) is not None:
            held += value * coefficient
            continue
        if isinstance(term, Product):
            coefficient *= term.coefficient
            term = _single(Product(1.0, term.powers))
        parts[term] = parts.get(term, 0.0) + coefficient
    kept = frozenset((t, c) for t, c in parts.items() if c)
    if not kept:
        return number(held)
    if not held and len(kept) == 1:
        ((term, coefficient),) = kept
        return product([(term, 1.0)], coefficient)
    return Sum(held, kept)


def _single(term: Term) -> Term:
    """``term`` without a product around it that does nothing."""
    if isinstance(term, Product) and term.coefficient == 1 and len(term.powers) == 1:
        ((inner, exponent),) = term.powers
        return inner if exponent == 1 else term
    return term


def factors(term: Term) -> Product:
    """``term`` as a product, with the products in it opened that have names of their own."""
    if not isinstance(term, Product):
        return Product(1.0, frozenset({(term, 1.0)}))
    coefficient, powers = term.coefficient, dict[Term, float]()
    for inner, exponent in term.powers:
        opened = Product(1.0, frozenset({(inner, 1.0)}))
        if isinstance(inner, Product) and exponent == int(exponent):
            opened = factors(inner)
        for atom, n in opened.powers:
            powers[atom] = powers.get(atom, 0.0) + n * exponent
        coefficient *= opened.coefficient**exponent
    return Product(coefficient, frozenset((t, n) for t, n in powers.items() if n))


def addends(term: Term) -> Sum:
    """``term`` as a sum, with the sums in it opened that have names of their own."""
    if not isinstance(term, Sum):
        coefficient = term.coefficient if isinstance(term, Product) else 1.0
        bare = _single(Product(1.0, term.powers)) if isinstance(term, Product) else term
        return Sum(0.0, frozenset({(bare, coefficient)}))
    held, parts = term.constant, dict[Term, float]()
    for inner, coefficient in term.parts:
        opened = addends(inner) if isinstance(inner, Sum) else Sum(0.0, frozenset({(inner, 1.0)}))
        held += opened.constant * coefficient
        for atom, c in opened.parts:
            parts[atom] = parts.get(atom, 0.0) + c * coefficient
    return Sum(held, frozenset((t, c) for t, c in parts.items() if c))


def quotient(term: Term, divisor: Term) -> Term | None:
    """``term`` without the factors of ``divisor``; None where it does not have them all."""
    if isinstance(term, Sum) and term != divisor:
        parts = [(quotient(t, divisor), c) for t, c in term.parts]
        if term.constant or any(t is None for t, _ in parts):
            return None
        return total((t, c) for t, c in parts if t is not None)
    whole, left = factors(term), dict(factors(term).powers)
    alone = [t for t, n in left.items() if isinstance(t, Sum) and n == 1 and t != divisor]
    if len(left) == len(alone) == 1:  # a number times a sum
        inner = quotient(alone[0], divisor)
        return None if inner is None else product([(inner, 1.0)], whole.coefficient)
    by = Product(1.0, frozenset({(divisor, 1.0)})) if divisor in left else factors(divisor)
    for atom, exponent in by.powers:
        there = left.get(atom, 0.0)
        if there * exponent <= 0 or abs(there) < abs(exponent):
            return None
        left[atom] -= exponent
    return product(left.items(), whole.coefficient / by.coefficient) if by.coefficient else None


def polynomial(term: Term, atoms: frozenset[Term]) -> Polynomial | None:
    """``term`` multiplied out, down to ``atoms``; None where something else is in it, or it is too long."""
    if term in atoms:
        return {frozenset({(term, 1.0)}): 1.0}
    if (value := constant(term)) is not None:
        return {frozenset(): value}
    if isinstance(term, Sum):
        found: Polynomial = {frozenset(): term.constant}
        for part, coefficient in term.parts:
            if (inner := polynomial(part, atoms)) is None:
                return None
            for monomial, c in inner.items():
                found[monomial] = found.get(monomial, 0.0) + c * coefficient
        return {m: c for m, c in found.items() if c}
    if not isinstance(term, Product):
        return None
    found = {frozenset(): term.coefficient}
    for part, exponent in term.powers:
        inner = polynomial(part, atoms)
        if inner is None or exponent not in (1, 2, 3) or len(found) * len(inner) ** int(exponent) > _MOST_MONOMIALS:
            return None
        for _ in range(int(exponent)):
            found = _multiplied(found, inner)
    return found


def _multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for one, c in a.items():
        for other, d in b.items():
            powers = dict(one)
            for atom, n in other:
                powers[atom] = powers.get(atom, 0.0) + n
            key = frozenset(powers.items())
            found[key] = found.get(key, 0.0) + c * d
    return found


def is_close(a: Polynomial | None, b: Polynomial) -> bool:
    """Whether both have the same monomials, with coefficients that are one number in single precision."""
    return a is not None and a.keys() == b.keys() and all(abs(a[m] - b[m]) <= CLOSE * abs(b[m]) for m in b)


def subterms(term: Term) -> Iterator[Term]:
    """``term`` and all that is in it."""
    yield term
    match term:
        case Op(args=inner):
            yield from (s for t in inner for s in subterms(t))
        case Product(powers=pairs) | Sum(parts=pairs):
            yield from (s for t, _ in pairs for s in subterms(t))


def uncast(term: Term) -> Term:
    """``term`` before it was converted to another dtype."""
    return uncast(term.args[0]) if isinstance(term, Op) and term.name == "cast" else term


def is_float32(term: Term) -> bool:
    """Whether ``term`` was converted to float32, with numbers added to it or not."""
    if isinstance(term, Sum) and len(term.parts) == 1:
        return all(is_float32(t) for t, _ in term.parts)
    return isinstance(term, Op) and term.name == "cast" and term.given == ("torch.float32",)
