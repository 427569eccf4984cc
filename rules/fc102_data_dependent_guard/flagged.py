"""Names for a tensor behind flags: ``full = self.strict and mask.all()`` is the tensor, or the flag before it."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.values.certainty import Certainty
from patcher.facts.values.types import Kind


class Flagged(Analysis):
    """Such names of one module, where an ``if`` tests them."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.certainty = facts.ask(Certainty)
        self._unchanged = facts.ask(Unchanged)

    def tensor(self, e: ast.expr) -> ast.expr | None:
        """The tensor that ``e``, a name, stands for where the flags before it let it; None where it is no such name.

        What ``e`` holds is that tensor or a Python number, whatever the flags are: ``torch.as_tensor`` takes both.
        """
        if not isinstance(e, ast.Name) or not isinstance(self.syntax.statement_of(e), ast.If):
            return None
        found = self.inference.definitions(e)
        d = next(iter(found)) if len(found) == 1 else None
        if d is None or d.how != "assign" or d.path or not isinstance(d.value, ast.BoolOp):
            return None
        *flags, last = d.value.values
        if self.readers(d.node) is None or not all(map(self._is_flag, flags)):
            return None
        return last if self.inference.of(last).is_tensor and self.certainty.is_used(last) else None

    def _is_flag(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python number: no comparison of sizes, which ``torch.as_tensor`` does not take."""
        value = self.inference.of(e)
        match e:
            case ast.Constant(value=bool() | int()):
                return True
            case ast.BoolOp(values=values):
                return all(map(self._is_flag, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.inference.of(operand).kind is Kind.PYTHON and not self.inference.of(operand).data
            case ast.Compare(ops=ops):
                return all(isinstance(op, (ast.Is, ast.IsNot)) for op in ops)
            case ast.Attribute():
                own = self.inference.instance_attribute(e) is not None
                return own and value.is_number and not value.data and self._unchanged.is_steady(e)
        return False
