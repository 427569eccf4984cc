"""Attention, written out: the softmax of scaled scores, with a mask or none, times the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from patcher.facts.operators.shapes import Shape
from patcher.facts.operators.terms import Leaf, Op, Term, addends, factors, product

_LAST_TWO = ((-2, -1), (2, 3))
_INFINITE = float("-inf")


@dataclass(frozen=True)
class _Scores:
    """``query`` by ``key``, times ``coefficient`` and ``scale`` to an exponent, plus or under a mask."""

    query: Term
    key: Term
    coefficient: float
    scale: tuple[Term, float] | None
    mask: Term | None = None
    kind: str = ""
    refused: str = ""


def attention(term: Term) -> Shape | None:
    """``dropout(softmax(q @ k.mT * scale + mask)) @ v``."""
    if not (isinstance(term, Op) and term.name == "matmul"):
        return None
    weights, value = term.args
    drop: Op | None = None
    while isinstance(weights, Op) and weights.name in ("cast", "dropout"):
        drop, weights = (weights if weights.name == "dropout" else drop), weights.args[0]
    if not (isinstance(weights, Op) and weights.name == "softmax" and weights.given[0] == (-1,)):
        return None
    inner = weights.args[0]
    found = _scores(inner.args[0] if isinstance(inner, Op) and inner.name == "cast" else inner)
    if found is None:
        return None
    operands: dict[str, Term] = {"query": found.query, "key": found.key, "value": value}
    options: dict[str, object] = {"scale": found.coefficient}
    if found.scale is not None:
        operands["scale"], options["exponent"] = found.scale
    if found.mask is not None:
        operands["mask"], options["mask"] = found.mask, found.kind
    if drop is not None:
        names = ("dropout",) if drop.given[1:] == ("module",) else drop.given[1:]
        operands |= {str(name): t for name, t in zip(names, drop.args[1:], strict=True)}
        options["dropout"] = True
    return Shape("attention", operands, "", options, found.refused or _why_converted(operands))


def _scores(term: Term) -> _Scores | None:
    match term:
        case Op(name="masked", args=(inner, mask)):
            return _under(inner, mask, "added")
        case Op(name="masked_fill", args=(inner, mask), given=(fill,)):
            finite = "" if fill == _INFINITE else "it is masked with a finite number, and so are rows that see nothing"
            return _under(inner, mask, "filled", finite)
    whole = addends(term)
    products = [(t, c) for t, c in whole.parts if _product(t, c) is not None]
    others = [(t, c) for t, c in whole.parts if (t, c) not in products]
    if whole.constant or len(products) != 1 or len(others) > 1 or any(c != 1 for _, c in others):
        return None
    found = _product(*products[0])
    if found is None or not others:
        return found
    return _Scores(found.query, found.key, found.coefficient, found.scale, others[0][0], "added", found.refused)


def _under(inner: Term, mask: Term, kind: str, refused: str = "") -> _Scores | None:
    found = _scores(inner)
    if found is None:
        return None
    refused = refused or found.refused or ("there are two masks" if found.mask is not None else "")
    return _Scores(found.query, found.key, found.coefficient, found.scale, mask, kind, refused)


def _product(term: Term, coefficient: float) -> _Scores | None:
    """``q @ k.mT`` times numbers."""
    pairs = factors(term)
    made = [t for t, n in pairs.powers if isinstance(t, Op) and t.name == "matmul" and n == 1]
    if len(made) != 1 or not isinstance(key := made[0].args[1], Op) or key.name != "transpose":
        return None
    if key.given[0] not in _LAST_TWO and not (made[0].given == ("bmm",) and key.given[0] == (1, 2)):
        return None
    numbers = {t: n for t, n in pairs.powers if t != made[0]}
    coefficient *= pairs.coefficient
    sides: list[Term] = []
    for side in (made[0].args[0], key.args[0]):
        own = factors(side)
        scaling = {t: n for t, n in own.powers if _is_number(t)}
        numbers |= {t: n + numbers.get(t, 0.0) for t, n in scaling.items()}
        coefficient *= own.coefficient
        scaled = bool(scaling) or own.coefficient != 1
        sides.append(product(pair for pair in own.powers if pair[0] not in scaling) if scaled else side)
    numbers = {t: n for t, n in numbers.items() if n}
    if not all(map(_is_number, numbers)):
        return None
    several = len(numbers) > 1 or (numbers and coefficient != 1)
    scale = next(iter(numbers.items()), None)
    why = "the scale is made of several numbers" if several else ""
    return _Scores(sides[0], sides[1], coefficient, scale, refused=why)


def _is_number(term: Term) -> bool:
    return (isinstance(term, Leaf) and term.number) or (isinstance(term, Op) and term.name == "size")


def _why_converted(operands: Mapping[str, Term]) -> str:
    """Why query, key and value may be of several dtypes, which PyTorch's own does not take."""
    to = {t.given[0] if isinstance(t, Op) and t.name == "cast" else "" for t in (operands[n] for n in _SIDES)}
    return "" if len(to) == 1 else "query, key and value are not converted alike"


_SIDES = ("query", "key", "value")
