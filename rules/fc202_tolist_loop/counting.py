"""A list of the numbers that ``torch.arange`` was asked for: Python can count by itself."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.tables.torch_api import INT64
from patcher.facts.values.sizes import Sizes
from patcher.rule import Code


@dataclass(frozen=True)
class Counted:
    """``code`` gives the list that ``read`` does. ``assumption``: when, where that is not always so."""

    read: ast.Call
    code: Code
    assumption: str = ""


class Counting(Analysis):
    """Which lists of one module are made of ``torch.arange``."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._sizes = facts.ask(Sizes)
        self._unchanged = facts.ask(Unchanged)

    def of(self, read: ast.Call) -> Counted | None:
        """The list that ``read``, ``t.tolist()``, makes of numbers that the host knows; None when it does not."""
        bounds = self._bounds(read)
        if bounds is None or not all(self.syntax.is_builtin(ast.Name(name)) for name in ("list", "range")):
            return None
        holes = ", ".join(f"{{{i}}}" for i in range(len(bounds)))
        return Counted(read, Code(f"list(range({holes}))", tuple(bounds)), self._assumption(bounds))

    def _bounds(self, read: ast.Call) -> list[ast.expr] | None:
        """The one or two integers between which ``torch.arange`` counts."""
        match read.func:
            case ast.Attribute(value=ast.Call(func=function, args=[_] | [_, _] as bounds, keywords=keywords)):
                pass
            case _:
                return None
        given = {k.arg: k.value for k in keywords}
        dtype, device = given.pop("dtype", None), given.pop("device", None)
        if self.syntax.qualified(function) != "torch.arange" or given:
            return None
        if dtype is not None and self.syntax.qualified(dtype) not in INT64:
            return None  # the numbers are floats, or may not fit
        if device is not None and self._unchanged.why_impure(device):
            return None
        return bounds if all(map(self._sizes.is_integer, bounds)) else None

    def _assumption(self, bounds: list[ast.expr]) -> str:
        start, stop = bounds if len(bounds) == 2 else (None, bounds[0])
        reasons = []
        zero = start is None or (isinstance(start, ast.Constant) and start.value == 0)
        if not (zero and self._sizes.is_count(stop)):
            below = "0" if start is None else ast.unparse(start)
            reasons.append(f"`{ast.unparse(stop)}` is not below `{below}`, which `torch.arange` does not take")
        if not all(map(self._is_fixed, bounds)):
            reasons.append("compiled code is seldom asked for another length of the list: each is compiled anew")
        return ", and ".join(reasons)

    def _is_fixed(self, bound: ast.expr) -> bool:
        """Whether ``bound`` is the same for tensors of other sizes: a literal, or a number of dimensions."""
        match bound:
            case ast.Constant():
                return True
            case ast.Call(func=ast.Name(id="len"), args=[shape], keywords=[]):
                return self._sizes.is_shape(shape)
            case ast.Attribute(attr="ndim", value=base) | ast.Call(func=ast.Attribute(attr="dim", value=base), args=[]):
                return self.inference.of(base).is_tensor
            case ast.BinOp(left=left, right=right):
                return self._is_fixed(left) and self._is_fixed(right)
        return False
