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
        made = [s.value for s in stores if not (isinstance(s.value, ast.Constant) and s.value.value is None)]
        rows = [v for v in made if isinstance(v, ast.Call) and self.syntax.qualified(v.func) in _PARAMETERS]
        return rows[0] if rows and len(rows) == len(made) and all(map(self._is_row_of, rows)) else None

    def _is_row_of(self, parameter: ast.Call) -> bool:
        """Whether it is made by a function that is given one size: ``nn.Parameter(torch.ones(n))``."""
        calls = [n for n in ast.walk(parameter) if isinstance(n, ast.Call) and n is not parameter]
        made = [n for n in calls if self.syntax.qualified(n.func) in _MADE]
        sizes = [n.elts if isinstance(n, (ast.Tuple, ast.List)) else [n] for call in made for n in call.args[:1]]
        return len(made) == 1 and len(made[0].args) == 1 and all(len(several) == 1 for several in sizes)

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
