"""Who can tell how a tensor lies in memory: its strides, gaps between its elements, whether a view of it is one."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.calls import Calls
from patcher.facts.tables import torch_api as api

#: Of another layout these raise, or give something else: a view here, a copy there.
_TELLING = frozenset(
    "as_strided data_ptr is_contiguous is_set_to resize_ resize_as_ set_ storage storage_offset stride "
    "untyped_storage unfold unflatten view view_as data numpy __array__ __dlpack__".split()
)
#: Views, or the tensor itself, whatever the layout is.
_KEEPING = (api.ALIASING | frozenset({"contiguous", "numel"})) - _TELLING
_DEPTH = 6


class Layout(Analysis):
    """Expressions of one module that are new tensors."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._calls = facts.ask(Calls)

    def why_told(self, e: ast.expr, dtype: str = "", depth: int = _DEPTH) -> str:
        """What may tell the layout of the tensor ``e`` from another one; "" when nothing does.

        ``dtype``: that of ``e``, as PyTorch calls it ("torch.int64"), where it is known: a cast to another one is a new
        tensor, which is dense.
        """
        if not depth:
            return "it goes too far to be followed"
        parent = self.syntax.parents[e]
        match parent:
            case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.FormattedValue():
                return ""
            case ast.Attribute(attr=attr) if attr in api.ABOUT:
                return ""
            case ast.Attribute(attr=attr, ctx=ast.Load()):
                return self._method(parent, dtype, depth)
            case ast.Subscript(value=value, ctx=ast.Load()) if value is e:
                return self.why_told(parent, dtype, depth - 1)
            case ast.Subscript(slice=key) if self._within(e, key):
                return ""
            case ast.AugAssign(value=value) if value is e:
                return ""
            case ast.Call():
                return self._argument(e, parent)
            case ast.keyword():
                return self._argument(e, self.syntax.parents[parent])
            case ast.Assign(targets=[ast.Name() as target], value=value) if value is e:
                readers = self.readers(target)
                if readers is None:
                    return f"`{target.id}` is read by another function"
                return next((why for r in readers if (why := self.why_told(r, dtype, depth - 1))), "")
            case ast.Return():
                function = self.syntax.function_of(parent)
                calls = self.inference.calls_of(function) if function is not None else []
                told = (self.why_told(c, dtype, depth - 1) for c in calls)
                return next(filter(None, told), "") if calls else "it is returned, to who may look at its strides"
        return f"line {getattr(parent, 'lineno', e.lineno)} may look at its strides, or change it in place"

    def _method(self, method: ast.Attribute, dtype: str, depth: int) -> str:
        call = self.syntax.parents[method]
        line = f"`{method.attr}` in line {method.lineno} looks at its strides, or changes it in place"
        called = isinstance(call, ast.Call) and call.func is method
        if not called or method.attr in _TELLING or method.attr.endswith("_"):
            return line if called or method.attr not in ("T", "mT", "real", "imag") else "it is turned, or a part of it"
        assert isinstance(call, ast.Call)
        cast = api.CASTS.get(method.attr)
        if cast and dtype and cast != dtype and not call.args and not call.keywords:
            return ""
        if method.attr in _KEEPING:
            return self.why_told(call, dtype, depth - 1)
        does = self._calls.of(call)
        plain = not (does.writes or does.gives or does.keeps or does.runs or does.world)
        return "" if plain else f"`{method.attr}` in line {method.lineno} may keep it, or change it in place"

    def _argument(self, e: ast.expr, call: ast.AST) -> str:
        if not isinstance(call, ast.Call):
            return f"`{ast.unparse(e)}` is handed to a class"
        does = self._calls.of(call)
        if does.writes or does.gives or does.keeps or does.runs or does.world:
            return f"line {call.lineno} hands it on to `{ast.unparse(call.func)}`"
        return ""

    @staticmethod
    def _within(e: ast.expr, key: ast.expr) -> bool:
        return e is key or (isinstance(key, ast.Tuple) and e in key.elts)
