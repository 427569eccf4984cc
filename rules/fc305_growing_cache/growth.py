"""What grows: joins to the whole of a place, the result of which goes back there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import CREATES
from patcher.facts.project.growing import is_given, joined, sources
from patcher.facts.syntax.classes import INITIALISERS, pairs
from patcher.facts.syntax.tree import FunctionNode, last_name, own_nodes
from patcher.facts.tables.wording import words
from patcher.facts.values.types import Category

_KEYS, _VALUES = frozenset({"k", "key", "keys"}), frozenset({"v", "value", "values"})
_KEPT = _KEYS | _VALUES | frozenset("kv cache caches cached mems past previous prev history".split())
#: Words for what is kept for sure: a past that is joined alone, and returned, may only be put in front of the input.
_SURE = frozenset("kv cache caches cached mems".split())
#: The last word of what has one row of integers or flags for each sample.
_FLAT = frozenset("mask masks id ids idx index indices token tokens position positions label labels length".split())


@dataclass(frozen=True)
class Growth:
    """One place that grows: ``node`` joins ``fresh`` to ``old`` along ``dim``.

    ``text``: the place as the source has it. ``how``: "stored" (back where it was) or "returned".
    """

    node: ast.Call
    text: str
    old: ast.expr
    fresh: ast.expr
    dim: int
    how: str


class Growing(Analysis):
    """Finds what grows in the functions of one module."""

    def of(self, function: FunctionNode) -> tuple[Growth, ...]:
        """What grows in ``function``, in the order of the lines; empty when it is not known to run in compiled code."""
        if function.name in INITIALISERS:
            return ()
        found = sorted(self._found(function), key=lambda g: (g.node.lineno, g.node.col_offset))
        grown = frozenset(w for g in found for w in words(g.text))
        pair = bool(grown & _KEYS and grown & _VALUES)
        told = [g for g in found if g.how == "stored" or len(found) > 1 or frozenset(words(g.text)) & _SURE]
        return tuple(told) if self.facts.reached(function) or pair else ()

    def _found(self, function: FunctionNode) -> Iterator[Growth]:
        for call in self.syntax.own(function, ast.Call):
            assert isinstance(call, ast.Call)
            if (parts := joined(call, self.syntax)) is None or self._is_asked_for(call):
                continue
            old, fresh, dim = parts
            if isinstance(fresh, ast.Call) and last_name(fresh.func) in CREATES:
                continue  # room, or padding
            text, how = self._place(call, old, function)
            if text and self._is_deep(call, text, dim):
                yield Growth(call, text, old, fresh, dim, how)

    def _place(self, call: ast.Call, old: ast.expr, function: FunctionNode) -> tuple[str, str]:
        """Where the result goes back, and how; "" when it does not."""
        stores = [
            (target, value)
            for n in own_nodes(function) if isinstance(n, ast.Assign)
            for t in n.targets for target, value in pairs(t, n.value) if value is not None
        ]  # fmt: skip
        names = {t.id for t, value in stores if isinstance(t, ast.Name) and call in _results(value)}
        been = {ast.unparse(e) for e in (old, *sources(old, function))}
        back = [
            t for t, value in stores
            if isinstance(t, ast.Attribute | ast.Subscript) and ast.unparse(t) in been
            and any(r is call or (isinstance(r, ast.Name) and r.id in names) for r in _results(value))
        ]  # fmt: skip
        known = {ast.unparse(t) for t in back} | names
        if any(_cuts(r) for t, value in stores if ast.unparse(t) in known for r in _results(value)):
            return "", ""
        if back:
            return ast.unparse(back[0]), "stored"
        given = is_given(old, function) and any(self._is_handed_on(n, call, names) for n in own_nodes(function))
        return (ast.unparse(old), "returned") if given else ("", "")

    def _is_handed_on(self, n: ast.AST, call: ast.Call, names: set[str]) -> bool:
        """Whether ``n`` is the result, beside something else that is returned or kept."""
        if n is not call and not (isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id in names):
            return False
        match around := self.syntax.parents[n]:
            case ast.Tuple() | ast.List() | ast.Dict():
                joins = isinstance(outer := self.syntax.parents[around], ast.Call) and last_name(outer.func) != "append"
                return not joins and not isinstance(outer, ast.Subscript) and n is not call
            case ast.Call(func=ast.Attribute(attr="append")):
                return True
        return False

    def _is_asked_for(self, call: ast.Call) -> bool:
        """Whether ``call`` runs only where something is too short: a table that grows on demand."""
        tests = [p.test for p in self.syntax.ancestors(call) if isinstance(p, ast.If)]
        return any(
            isinstance(n, ast.Compare)
            and isinstance(n.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            and any(part in ast.unparse(n) for part in (".shape", ".size(", "len("))
            for test in tests
            for n in ast.walk(test)
        )

    def _is_deep(self, call: ast.Call, text: str, dim: int) -> bool:
        """Whether the tensors have three dimensions or more, as far as can be told: flags and ids are small."""
        said = words(text)
        value = self.inference.of(call)
        small = value.dtype is not None and value.dtype.category in (Category.INT, Category.BOOL)
        if small or (said and said[-1] in _FLAT):
            return False
        return dim >= 2 or dim <= -2 or (dim in (1, -1) and bool(frozenset(said) & _KEPT))


def _results(e: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose value ``e`` may be."""
    if isinstance(e, ast.IfExp):
        yield from (*_results(e.body), *_results(e.orelse))
    else:
        yield e


def _cuts(e: ast.expr) -> bool:
    """Whether ``e`` is a part of a tensor."""
    parts = (
        e.slice.elts if isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Tuple) else [getattr(e, "slice", e)]
    )
    return any(isinstance(p, ast.Slice) for p in parts)
