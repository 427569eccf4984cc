"""Generators of random numbers of PyTorch's own, which no graph takes: who is handed one, and who asks one."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import last_name
from patcher.facts.syntax.written import defaults, is_none

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: Methods of a tensor that draw, and methods of a generator that end the graph.
_DRAWING = frozenset(
    "normal_ uniform_ random_ bernoulli bernoulli_ exponential_ cauchy_ geometric_ log_normal_ multinomial".split()
)
_ASKED = frozenset("manual_seed seed initial_seed get_state set_state clone_state".split())
_DEEPEST = 4


class Generators(Analysis):
    """Those of one module. Where nothing says that there is one, there is none: most are left out."""

    def ends(self, call: ast.Call) -> bool:
        """Whether the graph ends at ``call``, for the generator that it is handed, or for the one that it asks."""
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _ASKED and self.is_one(func.value):
            return True
        draws = (self.syntax.qualified(func) or "").startswith("torch.") or last_name(func) in _DRAWING
        return draws and any(k.arg == "generator" and self.is_one(k.value) for k in call.keywords)

    def is_one(self, e: ast.expr, depth: int = 0) -> bool:
        """Whether ``e`` is, or may be, a generator by what the code says."""
        if depth > _DEEPEST:
            return False
        match e:
            case ast.Call(func=ast.Attribute(value=held, attr="manual_seed")):
                return self.is_one(held, depth + 1)
            case ast.Call(func=func):
                return self.syntax.qualified(func) == "torch.Generator"
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_one(body, depth + 1) or self.is_one(orelse, depth + 1)
            case ast.BoolOp(values=values):
                return any(self.is_one(v, depth + 1) for v in values)
            case ast.Name():
                found = self.inference.definitions(e)
                return any(self._is_bound(d, depth + 1) for d in found) or self._is_default(e)
            case ast.Attribute():
                return self._is_default(e) or any(self.is_one(v, depth + 1) for v in self._stored(e))
        return False

    def _stored(self, e: ast.Attribute) -> list[ast.expr]:
        """What is stored in ``e``, an attribute of the instance."""
        own = self.inference.instance_attribute(e)
        stores = self.class_facts(own[0]).stores.get(own[1], ()) if own is not None else ()
        return [s.value for s in stores if s.value is not None]

    def _is_default(self, e: ast.expr) -> bool:
        return self.syntax.qualified(e) in ("torch.default_generator", "torch.random.default_generator")

    def _is_bound(self, d: Definition, depth: int) -> bool:
        value, path = d.part
        if d.how == "assign" and value is not None and not path:
            return self.is_one(value, depth)
        annotation = getattr(d.node, "annotation", None)
        if d.how != "parameter" or annotation is None or self.syntax.qualified(annotation) != "torch.Generator":
            return False
        function = self.syntax.parents[self.syntax.parents[d.node]]
        default = defaults(function.args).get(d.name) if isinstance(function, _FUNCTIONS) else None
        return default is None or not is_none(default)
