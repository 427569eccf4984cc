"""A branch that only says which of two tensors is kept, both of which are made of what the module has, not of inputs.

``if furthest > self.trained: self.register_buffer("rates", self.long_rates) else: ...``: what both arms need is made in
any case, and ``torch.where`` picks.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Condition, Conditions
from patcher.facts.values.types import Kind

_ASKED = frozenset("shape dtype device ndim".split())


@dataclass(frozen=True)
class ChosenState:
    """``prepared`` is done in any case, then ``keeping`` with the one of ``values`` that ``condition`` picks."""

    condition: Condition
    prepared: tuple[ast.stmt, ...]
    keeping: ast.stmt
    values: tuple[ast.expr, ast.expr]


class ChosenStates(Analysis):
    """Such branches of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.conditions = facts.ask(Conditions)

    def of(self, node: ast.If) -> ChosenState | None:
        """What ``node`` chooses; None when an arm does more than that, or is made of inputs."""
        condition = self.conditions.take_apart(node.test)
        if not isinstance(condition, Condition) or condition.guard or not node.orelse:
            return None
        one, other = kept(node.body[-1]), kept(node.orelse[-1])
        prepared = {ast.unparse(s): s for s in (*node.body[:-1], *node.orelse[:-1])}
        if one is None or other is None or ast.unparse(one) == ast.unparse(other):
            return None
        if _form(node.body[-1], one) != _form(node.orelse[-1], other):
            return None
        if not all(_is_ready(s) for s in prepared.values()):
            return None
        made_of = [one, other, *(n.value for s in prepared.values() for n in ast.walk(s) if isinstance(n, ast.Assign))]
        held = [self.inference.of(v) for v in (one, other)]
        buffer = isinstance(node.body[-1], ast.Expr)  # which takes nothing but tensors
        if any(v.trainable or not (v.is_tensor or (buffer and v.kind is Kind.UNKNOWN)) for v in held):
            return None
        module = ast.unparse(node.body[-1]).partition(".")[0] if buffer else ""
        if not all(self._is_settled(e, module) for e in made_of):
            return None
        return ChosenState(condition, tuple(prepared.values()), node.body[-1], (one, other))

    def _is_settled(self, e: ast.expr, module: str) -> bool:
        """Whether ``e`` reads no tensor that is handed in, but what ``module`` and the instance have."""
        for n in ast.walk(e):
            if isinstance(n, ast.Name) and (self.inference.of(n).is_tensor or self.inference.of(n).data):
                parent = self.syntax.parents[n]
                own = n.id == module or self.inference.instance_attribute(parent) is not None
                if not own and not (isinstance(parent, ast.Attribute) and parent.attr in _ASKED):
                    return False
        return True


def kept(s: ast.stmt) -> ast.expr | None:
    """The tensor that ``s`` keeps in a name or a buffer."""
    match s:
        case ast.Assign(targets=[ast.Name()], value=value):
            return value
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(), attr="register_buffer"), args=[ast.Constant(), value])
        ):
            return value
    return None


def _form(s: ast.stmt, value: ast.expr) -> str:
    return ast.unparse(s).replace(ast.unparse(value), "", 1)


def _is_ready(s: ast.stmt) -> bool:
    """Whether ``s`` names something, moves a tensor that is kept, or makes one that is missing."""
    match s:
        case ast.Assign(targets=[ast.Name()]):
            return True
        case ast.Assign(targets=[ast.Attribute() as to], value=ast.Call(func=ast.Attribute(value=moved, attr="to"))):
            return ast.unparse(to) == ast.unparse(moved)
        case ast.If(test=test, body=body, orelse=[]):
            asked = ast.unparse(test)
            kept = [
                n.attr
                for s in body
                for n in ast.walk(s)
                if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)
            ]
            asks = any(word in asked for word in ("hasattr", "getattr", "is None"))
            return asks and all(isinstance(inner, ast.Assign) for inner in body) and all(a in asked for a in kept)
    return False
