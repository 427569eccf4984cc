"""Which statements say whether a tensor asks for gradients, and what is known of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import same_expression
from patcher.facts.values.certainty import Certainty, Grade

_ATTRIBUTE, _METHOD = "requires_grad", "requires_grad_"
#: What tensors have and modules have not.
_TENSORS_OWN = frozenset("shape size dim ndim dtype device numel view reshape".split())


@dataclass(frozen=True)
class Asked:
    """``tensor`` is told ``value``. ``reason``: why the statement has to stay as it is; "" where not."""

    tensor: ast.expr
    value: ast.expr
    reason: str = ""


class Asking(Analysis):
    """Statements of one module."""

    def of(self, statement: ast.Assign | ast.Expr) -> Asked | None:
        """What ``statement`` says, when it breaks the graph."""
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=tensor, attr=name)], value=value) if name == _ATTRIBUTE:
                return self._assigned(statement, tensor, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=tensor, attr=name)) as call) if name == _METHOD:
                return self._told(tensor, call)
        return None

    def _assigned(self, statement: ast.stmt, tensor: ast.expr, value: ast.expr) -> Asked | None:
        if self.facts.ask(Certainty).of(tensor) == Grade.UNKNOWN or self._is_left(statement, value):
            return None
        if isinstance(value, ast.Constant) and value.value is True:
            return Asked(tensor, value, "the method breaks the graph too, where a tensor begins to ask for gradients")
        places = all(isinstance(e, (ast.Name, ast.Attribute, ast.Constant)) for e in (tensor, value))
        return Asked(tensor, value, "" if places else "the value is worked out before the tensor is looked up")

    def _is_left(self, statement: ast.stmt, value: ast.expr) -> bool:
        """Whether ``statement`` is what is left for all but False."""
        around = self.syntax.parents[statement]
        if not isinstance(around, ast.If) or statement not in around.orelse:
            return False
        match around.test:
            case ast.Compare(left=left, ops=[ast.Is()], comparators=[ast.Constant(value=False)]):
                return same_expression(left, value)
        return False

    def _told(self, tensor: ast.expr, call: ast.Call) -> Asked | None:
        value: ast.expr = ast.Constant(True)
        given = [*call.args, *(k.value for k in call.keywords)]
        if given:
            value = given[0]
        if len(given) > 1 or not (isinstance(value, ast.Constant) and value.value is True):
            return None
        bound = self.inference.definitions(tensor) if isinstance(tensor, ast.Name) else frozenset()
        if not isinstance(tensor, ast.Name) or not self._is_tensor(tensor):
            return None
        if not bound or any(d.how not in ("parameter", "iteration") for d in bound) or self.facts.eager_only(call):
            return None  # what is made here, a graph takes as long as it stays inside
        return Asked(tensor, value)

    def _is_tensor(self, name: ast.Name) -> bool:
        """Whether ``name``, on which the method is called, is a tensor and no module, by what else is done with it."""
        if self.facts.ask(Certainty).of(name) >= Grade.USED:
            return True
        function, bound = self.syntax.function_of(name), self.inference.definitions(name)
        return any(
            isinstance(n, ast.Attribute)
            and n.attr in _TENSORS_OWN
            and isinstance(n.value, ast.Name)
            and n.value.id == name.id
            and self.inference.definitions(n.value) == bound
            for n in (self.syntax.subtree(function) if function is not None else ())
        )
