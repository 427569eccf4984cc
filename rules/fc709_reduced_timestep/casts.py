"""Where a value gets fewer digits: what is cast, and to which dtype."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts.analysis import Analysis
from patcher.facts.syntax.tree import last_name
from patcher.facts.tables.wording import words
from patcher.facts.values.module_values import imported

_REDUCED = {"torch.bfloat16": "bfloat16", "torch.float16": "float16", "torch.half": "float16"}
_METHODS = {"half": "float16", "bfloat16": "bfloat16"}
_DTYPES = frozenset(
    "float32 float float64 double int32 int int64 long int16 int8 uint8 bool complex64 complex128 float8_e4m3fn".split()
)
_MAKING = frozenset({"torch.full", "torch.tensor", "torch.as_tensor"})


@dataclass(frozen=True)
class Cast:
    """``value``: what is cast. ``dtype``: the expression that says so, None for a method. ``to``: "" when unknown."""

    call: ast.Call
    value: ast.expr
    dtype: ast.expr | None
    to: str


class Casts(Analysis):
    """Calls of one module."""

    def of(self, call: ast.Call) -> Cast | None:
        """The cast that ``call`` is, when it may be one to half precision."""
        func = call.func
        given = next((k.value for k in call.keywords if k.arg == "dtype"), None)
        if imported(self.syntax, func) in _MAKING:
            made = call.args[1:] if last_name(func) == "full" else call.args
            return self._cast(call, made[0], given) if made else None
        if not isinstance(func, ast.Attribute):
            return None
        if func.attr in _METHODS and not call.args and not call.keywords:
            return Cast(call, func.value, None, _METHODS[func.attr])
        last = given or (call.args[-1] if call.args else None)
        sure = last is not None and (len(call.args) == 2 or self._is_dtype(last))
        return self._cast(call, func.value, last) if func.attr in ("to", "type") and sure else None

    def _cast(self, call: ast.Call, value: ast.expr, dtype: ast.expr | None) -> Cast | None:
        found = self._reduced(dtype, 4) if dtype is not None else None
        return None if found is None else Cast(call, value, dtype, found)

    def _is_dtype(self, e: ast.expr) -> bool:
        if isinstance(e, ast.IfExp):
            return self._is_dtype(e.body) and self._is_dtype(e.orelse)
        what = imported(self.syntax, e) or ""
        return what in _REDUCED or what.removeprefix("torch.") in _DTYPES or "dtype" in words(last_name(e))

    def _reduced(self, e: ast.expr, depth: int) -> str | None:
        """The reduced dtype that ``e`` may be; "" where it may be any; None where it is another one."""
        what = imported(self.syntax, e) or ""
        if what in _REDUCED:
            return _REDUCED[what]
        if what.startswith("torch.") and what.removeprefix("torch.") in _DTYPES:
            return None
        values: list[ast.expr | None] = []
        if isinstance(e, ast.IfExp):
            values = [e.body, e.orelse]
        elif isinstance(e, ast.Name) and depth:
            values = [d.value if d.how == "assign" and not d.path else None for d in self.inference.definitions(e)]
        found = {"" if v is None else self._reduced(v, depth - 1) for v in values} if values else {""}
        known = found - {None}
        return None if not known else known.pop() if len(known) == 1 else ""
