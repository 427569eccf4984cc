"""Which expressions are masks by what code near them says: enough for a report, never for a fix."""

from __future__ import annotations

import ast

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition
from patcher.facts.numbers.likely_tensors import LikelyTensors
from patcher.facts.syntax.tree import last_name
from patcher.facts.values.types import Kind

Seen = frozenset[Definition]
#: Methods that give a mask of a mask.
_KEEPING = frozenset(
    "repeat_interleave repeat reshape view flatten squeeze unsqueeze clone contiguous expand expand_as masked_fill "
    "transpose permute t roll flip".split()
)
_LOGIC = (ast.BitAnd, ast.BitOr, ast.BitXor)


class LikelyMasks(Analysis):
    """Answers for one module."""

    def of(self, e: ast.expr, seen: Seen = frozenset()) -> bool:
        """Whether ``e`` is made by a comparison of what is likely a tensor, or boolean, or called a mask."""
        match e:
            case ast.Name():
                found = self.inference.definitions(e) - seen
                return bool(found) and all(self._bound(d, seen | found) for d in found)
            case ast.Subscript(value=held, slice=index):
                key = isinstance(index, ast.Constant) and isinstance(index.value, str)
                return not key and self.of(held, seen)  # a row of it
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.of(operand, seen) or self.inference.of(operand).kind is Kind.UNKNOWN
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _LOGIC):
                return self.of(left, seen) or self.of(right, seen)
            case ast.Compare():
                return self.facts.ask(LikelyTensors).of(e)
            case ast.Call(func=ast.Attribute(value=held, attr=method)) if method in _KEEPING:
                return self.inference.of(e).is_boolean or self.of(held, seen)
        return isinstance(e, ast.Call) and self.inference.of(e).is_boolean

    def _bound(self, d: Definition, seen: Seen) -> bool:
        value, path = d.part
        if d.how == "parameter":
            return self._is_said(d)
        if d.how == "iteration" and isinstance(value, ast.Call) and self.syntax.builtin(value) == "zip":
            return len(path) == 1 and path[0] < len(value.args) and self.of(value.args[path[0]], seen)
        return d.how in ("assign", "augmented") and not path and value is not None and self.of(value, seen)

    def _is_said(self, d: Definition) -> bool:
        """Whether the parameter is said to be a mask: ``Bool[Tensor, "b n"]``, ``BoolTensor``, or as it is called."""
        annotation = getattr(d.node, "annotation", None)
        for n in ast.walk(annotation) if annotation is not None else ():
            said = n.value if isinstance(n, ast.Subscript) else n
            if last_name(said) == ("Bool" if isinstance(n, ast.Subscript) else "BoolTensor"):
                return True
        return d.name.rpartition("_")[2] == "mask"
