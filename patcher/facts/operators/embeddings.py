"""What conditions or places activations: adaLN's modulation, and rotary position embeddings."""

from __future__ import annotations

from patcher.facts.operators.shapes import Shape
from patcher.facts.operators.terms import Leaf, Op, Sum, Term, addends, factors, uncast


def modulate(term: Term) -> Shape | None:
    """``x * (1 + scale) + shift``."""
    whole = addends(term)
    if whole.constant or len(whole.parts) != 2 or any(c != 1 for _, c in whole.parts):
        return None
    for scaled, shift in (pair for pair in _ordered([t for t, _ in whole.parts])):
        pairs = factors(scaled)
        if pairs.coefficient != 1 or len(pairs.powers) != 2 or any(n != 1 for _, n in pairs.powers):
            continue
        for x, more in _ordered([t for t, _ in pairs.powers]):
            scale = _above_one(more)
            if scale is not None and not any(map(_is_number, (x, scale, shift))):
                return Shape("modulate", {"x": x, "scale": scale, "shift": shift})
    return None


def rope(term: Term) -> Shape | None:
    """``x * cos + turned(x) * sin``, and the product of complex numbers."""
    if isinstance(term, Op) and term.name == "view_as_real":
        inside = [t for t, n in factors(term.args[0]).powers if n == 1]
        seen = [t for t in inside if isinstance(t, Op) and t.name == "view_as_complex"]
        return (
            Shape("rope", {"x": seen[0].args[0]}, "complex")
            if seen and len(inside) == 2 == len(factors(term.args[0]).powers)
            else None
        )
    whole = addends(term)
    if whole.constant or len(whole.parts) != 2 or any(c != 1 for _, c in whole.parts):
        return None
    for straight, turned in _ordered([t for t, _ in whole.parts]):
        for side in (t for t, _ in factors(turned).powers):
            bare = uncast(side)
            if isinstance(bare, Op) and bare.name == "turned":
                one, other = factors(straight).powers, factors(turned).powers
                x = [t for t, _ in one if uncast(t) == uncast(bare.args[0])]
                angles = [t for t, n in (*one, *other) if n == 1 and t not in (*x, side)]
                if len(x) == 1 and len(one) == len(other) == 2 == len(set(angles)):
                    return Shape("rope", {"x": x[0]}, str(bare.given[0]))
    return None


def _ordered(pair: list[Term]) -> list[tuple[Term, Term]]:
    first, second = pair
    return [(first, second), (second, first)]


def _above_one(term: Term) -> Term | None:
    """``scale`` of ``1 + scale``."""
    if not isinstance(term, Sum) or term.constant != 1 or len(term.parts) != 1:
        return None
    ((scale, coefficient),) = term.parts
    return scale if coefficient == 1 else None


def _is_number(term: Term) -> bool:
    if isinstance(term, Op) and term.name == "size":
        return True
    return (isinstance(term, Leaf) and term.number) or (hasattr(term, "powers") and not term.powers)
