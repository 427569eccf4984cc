"""Which statements cut a batch to its longest row, and nothing else."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.numbers.likely_tensors import LikelyTensors

#: What changes a tensor's shape in its place: what was cut is another tensor, what was not is the same.
_RESHAPING = frozenset("resize_ squeeze_ unsqueeze_ transpose_ t_ swapaxes_ set_ detach_ requires_grad_".split())


@dataclass(frozen=True)
class Cut:
    """``statement`` cuts ``whole`` along ``dimension`` to the largest of ``lengths``, and binds ``target`` to it."""

    statement: ast.Assign
    target: ast.Name
    whole: ast.expr
    dimension: int
    lengths: ast.expr


class Cuts(Analysis):
    """Slices of one module."""

    def of(self, cut: ast.Slice) -> Cut | None:
        """The statement that ``cut`` is in, when it does nothing but cut to a longest row."""
        statement = self.syntax.statement_of(cut)
        match statement:
            case ast.Assign(targets=[ast.Name() as target], value=ast.Subscript(value=whole, slice=index)):
                pass
            case _:
                return None
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if cut.upper is None or not _from_start(cut) or not any(part is cut for part in parts):
            return None
        lengths, dimension = self._lengths(cut.upper), _dimension(parts, cut)
        if lengths is None or dimension is None or not _is_place(whole):
            return None
        if not isinstance(index, ast.Tuple) and not self._is_tensor(whole):
            return None  # a list, for all that is known
        if self.facts.eager_only(statement) or self._is_reshaped(target) or self._is_known_wider(statement, whole):
            return None
        return Cut(statement, target, whole, dimension, lengths)

    def _lengths(self, bound: ast.expr) -> ast.expr | None:
        """The tensor whose largest number ``bound`` is."""
        match bound:
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
                return self._lengths(inner)
            case ast.Call(func=ast.Attribute(value=held, attr="max" | "amax"), args=[], keywords=[]):
                return held if _is_place(held) and self._is_tensor(held) else None
            case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
                return self._lengths(inner)
            case ast.Call(func=func, args=[held], keywords=[]) if self.syntax.qualified(func) in (
                "torch.max",
                "torch.amax",
            ):
                return held if _is_place(held) and self._is_tensor(held) else None
            case ast.Call(args=[ast.Name() as held], keywords=[]) if self.syntax.builtin(bound) == "max":
                return held if self._is_given(held) and self._is_tensor(held) else None
            case ast.Name():
                return self._named(bound)
        return None

    def _named(self, bound: ast.Name) -> ast.expr | None:
        """As `_lengths`, of a name that is nothing but the largest number of a tensor that came in as it is."""
        found = self.inference.definitions(bound)
        values = [d.value for d in found if d.how == "assign" and not d.path]
        match values:
            case [ast.Call(args=[]) | ast.Call(args=[_]) as value] if len(found) == 1:
                asked = isinstance(value.func, ast.Attribute) and value.func.attr == "item"
                lengths = None if asked or self.syntax.builtin(value) == "int" else self._lengths(value)
                return lengths if isinstance(lengths, ast.Name) and self._is_given(lengths, bound) else None
        return None

    def _is_given(self, lengths: ast.Name, at: ast.Name | None = None) -> bool:
        """Whether ``lengths`` is a parameter as it came in, still at ``at``: what was computed may be shorter."""
        found = self.inference.definitions(lengths)
        function = self.syntax.function_of(lengths)
        bound = [n for n in self.syntax.own(function, ast.Name) if isinstance(n, ast.Name)] if function else []
        again = at is not None and any(n.id == lengths.id and isinstance(n.ctx, ast.Store) for n in bound)
        return bool(found) and all(d.how == "parameter" for d in found) and not again

    def _is_known_wider(self, statement: ast.stmt, whole: ast.expr) -> bool:
        """Whether it stands under a test of how wide ``whole`` is, so that there may well be something to cut."""
        sizes = (f"{ast.unparse(whole)}.shape", f"{ast.unparse(whole)}.size(")
        around = (p.test for p in self.syntax.ancestors(statement) if isinstance(p, ast.If))
        return any(
            isinstance(n, ast.Compare) and any(s in ast.unparse(n) for s in sizes)
            for test in around
            for n in ast.walk(test)
        )

    def _is_tensor(self, e: ast.expr) -> bool:
        return self.inference.of(e).is_tensor or self.facts.ask(LikelyTensors).of(e)

    def _is_reshaped(self, name: ast.Name) -> bool:
        """Whether the function changes the shape of ``name`` in its place, or says what it is of itself."""
        function = self.syntax.function_of(name)
        return any(
            isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == name.id
            and (n.attr in _RESHAPING or not isinstance(n.ctx, ast.Load))
            for n in (self.syntax.subtree(function) if function is not None else ())
        )


def _from_start(cut: ast.Slice) -> bool:
    zero = isinstance(cut.lower, ast.Constant) and cut.lower.value == 0
    return (cut.lower is None or zero) and cut.step is None


def _dimension(parts: list[ast.expr], cut: ast.Slice) -> int | None:
    """Which dimension ``cut`` cuts, where all others stay whole; from the end where an ellipsis stands before it."""
    others = [part for part in parts if part is not cut]
    dots = [n for n, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is ...]
    whole = all(ast.unparse(part) in (":", "...") for part in others)
    if not whole or len(dots) > 1:
        return None
    at = next(n for n, part in enumerate(parts) if part is cut)
    return at - len(parts) if dots and dots[0] < at else at


def _is_place(e: ast.expr) -> bool:
    """Whether to look ``e`` up does nothing else: a name, or attributes of one."""
    while isinstance(e, ast.Attribute):
        e = e.value
    return isinstance(e, ast.Name)
