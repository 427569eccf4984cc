"""Which statements say whether a tensor asks for gradients, and what is known of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.tree import same_expression
from patcher.facts.syntax.written import defaults
from patcher.facts.values.certainty import Certainty, Grade

_ATTRIBUTE, _METHOD = "requires_grad", "requires_grad_"
#: What asks for gradients: methods and attributes, and functions of torch.autograd.
_TAKEN = frozenset({"backward", "grad", "register_hook", "retain_grad"})
#: What tensors have and modules have not.
_TENSORS_OWN = frozenset("shape size dim ndim dtype device numel view reshape".split())
_ASKS = frozenset(f"torch.autograd.{name}" for name in ("grad", "backward", "functional.jacobian", "functional.vjp"))


@dataclass(frozen=True)
class Asked:
    """``tensor`` is told ``value``. ``reason``: why the statement has to stay as it is; "" where not."""

    tensor: ast.expr
    value: ast.expr
    reason: str = ""


class Asking(Analysis):
    """Statements of one module."""

    def of(self, statement: ast.Assign | ast.Expr) -> Asked | None:
        """What ``statement`` says, when it ends the graph."""
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=tensor, attr=name)], value=value) if name == _ATTRIBUTE:
                return self._assigned(statement, tensor, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=tensor, attr=name)) as call) if name == _METHOD:
                return self._told(tensor, call)
        return None

    def _assigned(self, statement: ast.stmt, tensor: ast.expr, value: ast.expr) -> Asked | None:
        known = self.facts.ask(Certainty).of(tensor)
        if known == Grade.UNKNOWN:
            return None
        if known < Grade.CERTAIN:
            return Asked(tensor, value, f"`{ast.unparse(tensor)}` is not known to be a tensor")
        if not self._is_place(tensor) or not (self._is_place(value) or isinstance(value, ast.Constant)):
            return Asked(tensor, value, "the value is worked out before the tensor is looked up")
        if self._is_left(statement, value):
            return None
        if reason := self.facts.ask(Unchanged).why_impure(value):
            return Asked(tensor, value, reason)
        if not self._is_bool(value):
            return Asked(tensor, value, f"`{ast.unparse(value)}` is not known to be a bool")
        if isinstance(value, ast.Constant) and value.value is True:
            return Asked(tensor, value, "the method ends the graph as well, where a tensor begins to ask for gradients")
        return Asked(tensor, value, self.facts.writing.why_not_replaced(statement) or "")

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
        return Asked(tensor, value, self._why_needed(call))

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

    def _is_place(self, e: ast.expr) -> bool:
        """Whether to look ``e`` up does nothing else: a name, or attributes of one."""
        while isinstance(e, ast.Attribute):
            e = e.value
        return isinstance(e, ast.Name)

    def _is_bool(self, value: ast.expr) -> bool:
        """Whether ``value`` is a bool, or a parameter whose default is one."""
        if isinstance(value, ast.Constant):
            return isinstance(value.value, bool)
        return self.inference.of(value).python == "bool" or self._is_given_bool(value)

    def _is_given_bool(self, value: ast.expr) -> bool:
        """Whether ``value`` is a parameter whose default is a bool: what else is given is an error either way."""
        function = self.syntax.function_of(value)
        if not isinstance(value, ast.Name) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        bound = self.inference.definitions(value)
        default = defaults(function.args).get(value.id)
        given = bool(bound) and all(d.how == "parameter" for d in bound)
        return given and isinstance(default, ast.Constant) and isinstance(default.value, bool)

    def _why_needed(self, call: ast.Call) -> str:
        """Why the gradients may be needed in the same function; "" where nothing there asks for any."""
        function = self.syntax.function_of(call)
        for n in self.syntax.subtree(function) if function is not None else ():
            taken = isinstance(n, ast.Attribute) and n.attr in _TAKEN
            if taken or (isinstance(n, ast.Call) and self.syntax.qualified(n.func) in _ASKS):
                return f"`{ast.unparse(n)}` asks for gradients here"
        return ""
