"""How a condition on data is written as one tensor."""

from __future__ import annotations

from patcher.facts.effects.conditions import Junction, Leaf, Negation, Tensor
from patcher.rule import Code


def holes(n: int, joint: str, start: int = 0) -> str:
    """``n`` holes of a template, numbered from ``start``."""
    return joint.join(f"{{{i + start}}}" for i in range(n))


def as_tensor(part: Tensor) -> Code:
    """A 0-d boolean tensor that is true when ``part`` would pass as a test."""
    match part:
        case Leaf(expr=expr, boolean=boolean, scalar=scalar):
            code = Code("{0}" if boolean else "{0} != 0", (expr,))
            return code if scalar else Code("{0}.reshape(())", (code,))
        case Negation(part=inner):
            return Code("~{0}", (as_tensor(inner),))
        case Junction(every=every, parts=parts):
            return Code(holes(len(parts), " & " if every else " | "), tuple(map(as_tensor, parts)))


def as_predicate(part: Tensor) -> Code:
    """What ``torch.cond`` takes for ``part``: a tensor of any dtype with one element, as ``if`` does."""
    match part:
        case Leaf(expr=expr):
            return Code("{0}", (expr,))
        case Negation(part=Leaf(expr=expr, boolean=boolean)):
            return Code("~{0}" if boolean else "{0} == 0", (expr,))
    return as_tensor(part)
