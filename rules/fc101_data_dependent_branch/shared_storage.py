"""Tensors that an arm is given while they share memory, which ``torch.cond`` does not take: ``q, k = x.chunk(2)``."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import last_name
from patcher.facts.tables import call_effects as tables
from patcher.facts.values.types import Kind

#: What is a part of what it is given in rare cases only.
_RARELY = frozenset(
    "einsum dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout grad".split()
)
#: Attributes of a tensor that are no tensors.
_TOLD = frozenset("shape dtype device ndim is_cuda requires_grad itemsize nbytes".split())

Root = Definition | ast.expr | str


class SharedStorage(Analysis):
    """What names and attributes of one module are parts of, as far as it is plain to see."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._known: dict[Definition, frozenset[Root]] = {}

    def from_outside(self, arms: Iterable[ast.AST]) -> list[ast.expr]:
        """The tensors, as far as is known, that nodes of arms read and that are there before."""
        nodes = dict.fromkeys(arms)
        return [n for n in nodes if isinstance(n, ast.expr) and self._is_from_outside(n, nodes.keys())]

    def two_of_one(self, tensors: Iterable[ast.expr]) -> str | None:
        """Two of ``tensors`` that share memory, for a message; None where none are seen to."""
        seen: dict[str, frozenset[Root]] = {}
        for e in tensors:
            text, roots = ast.unparse(e), self._roots(e)
            other = next((t for t, known in seen.items() if t != text and known & roots), None)
            if other is not None:
                return f"`{other}` and `{text}` are parts of one tensor"
            seen[text] = seen.get(text, frozenset()) | roots
        return None

    def _is_from_outside(self, n: ast.expr, inside: Collection[ast.AST]) -> bool:
        """Whether ``n`` is the tensor itself that code around the arms holds."""
        if isinstance(n, ast.Attribute) and self.inference.instance_attribute(n) is not None:
            return self.inference.of(n).kind in (Kind.TENSOR, Kind.UNKNOWN) and not self._is_called(n)
        if not isinstance(n, ast.Name) or not isinstance(n.ctx, ast.Load) or self._is_called(n):
            return False
        parent = self.syntax.parents[n]
        if isinstance(parent, ast.Attribute) and parent.attr in _TOLD:
            return False
        definitions = self.inference.definitions(n)
        outside = bool(definitions) and not any(d.node in inside for d in definitions)
        return outside and self.inference.of(n).kind in (Kind.TENSOR, Kind.UNKNOWN)

    def _is_called(self, n: ast.expr) -> bool:
        parent = self.syntax.parents[n]
        return isinstance(parent, ast.Call) and parent.func is n

    def _roots(self, e: ast.expr) -> frozenset[Root]:
        """What ``e`` is, or is a part of."""
        match e:
            case ast.Name():
                definitions = self.inference.definitions(e)
                return frozenset(r for d in definitions for r in self._bound(d)) or frozenset({e})
            case ast.Attribute(value=held, attr=attr):
                if self.inference.instance_attribute(e) is not None:
                    return frozenset({ast.unparse(e)})
                return self._roots(held) if attr in tables.VIEWS else frozenset({e})
            case ast.Subscript(value=held, slice=at):
                parts = at.elts if isinstance(at, ast.Tuple) else [at]
                picked = any(self.inference.of(p).is_tensor or isinstance(p, ast.List) for p in parts)
                return frozenset({e}) if picked else self._roots(held)
            case ast.Call(func=func, args=args) if last_name(func) in tables.VIEWS - _RARELY:
                own = isinstance(func, ast.Attribute) and self.syntax.qualified(func) is None
                given = func.value if own and isinstance(func, ast.Attribute) else next(iter(args), None)
                return self._roots(given) if given is not None else frozenset({e})
        return frozenset({e})

    def _bound(self, d: Definition) -> frozenset[Root]:
        if d not in self._known:
            self._known[d] = frozenset({d})  # a loop ends here
            value, path = d.part
            if d.how == "assign" and value is not None:
                roots = self._roots(value)
                made = roots == {value} and not path
                self._known[d] = frozenset({d}) if made else roots
        return self._known[d]
