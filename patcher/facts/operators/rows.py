"""Which terms are rows of weights that a module keeps: a parameter of one dimension, also plus one or converted."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.operators.terms import Leaf, Op, Sum, Term
from patcher.facts.syntax.classes import self_name

_MADE = frozenset(f"torch.{name}" for name in ("ones", "zeros", "empty", "randn", "full"))
_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")


class Rows(Analysis):
    """Answers for one module."""

    def is_row(self, term: Term) -> bool:
        """Whether ``term`` is a row of weights."""
        match term:
            case Op(name="cast", args=(inner,)):
                return self.is_row(inner)
            case Sum(constant=1.0, parts=parts) if len(parts) == 1:
                return all(c == 1 and self.is_row(t) for t, c in parts)
            case Leaf(key=key):
                return self.store(term) is not None if isinstance(key, tuple) else False
        return False

    def store(self, term: Leaf) -> ast.Call | None:
        """What makes the row, as a parameter in the constructor."""
        own = self._attribute(term)
        if own is None:
            return None
        stores = [s for s in self.class_facts(own[0]).stores.get(own[1], []) if s.how != "declared"]
        rows = [r for s in stores if (r := self._row_in(s.value)) is not None]
        others = [s for s in stores if self._row_in(s.value) is None and not self._is_none(s.value)]
        return rows[0] if rows and not others else None

    def _attribute(self, term: Leaf) -> tuple[ast.ClassDef, str] | None:
        """The class and attribute, where ``term`` is ``self.x``."""
        match term.key:
            case ((str() as name, frozenset() as definitions, _), str() as attr) if len(definitions) == 1:
                (d,) = definitions
                function = self.syntax.parents.get(self.syntax.parents.get(d.node, d.node))
                if isinstance(function, ast.FunctionDef) and self_name(function) == name == d.name:
                    cls = self.syntax.class_of(function)
                    return (cls, attr) if cls is not None and self.syntax.method_of(function) is function else None
        return None

    def _row_in(self, value: ast.expr | None) -> ast.Call | None:
        """``torch.ones(n)`` of ``nn.Parameter(torch.ones(n))``."""
        if not isinstance(value, ast.Call) or self.syntax.qualified(value.func) not in _PARAMETERS or not value.args:
            return None
        made = value.args[0]
        while isinstance(made, ast.BinOp) and isinstance(made.op, ast.Mult):  # torch.ones(n) * 0.1
            made = made.left if isinstance(made.left, ast.Call) else made.right
        if not isinstance(made, ast.Call) or self.syntax.qualified(made.func) not in _MADE:
            return None
        sizes = made.args[:1] if (self.syntax.qualified(made.func) or "").endswith("full") else made.args
        if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
            sizes = sizes[0].elts
        typed = any(k.arg in ("dtype", None) for k in made.keywords)  # else it has the dtype of the module
        return made if len(sizes) == 1 and not typed and not isinstance(sizes[0], ast.Starred) else None

    def _is_none(self, value: ast.expr | None) -> bool:
        return isinstance(value, ast.Constant) and value.value is None
