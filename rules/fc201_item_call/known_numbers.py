"""Integers that a function puts into a tensor and reads out again, though it knew them all along."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.classes import INITIALISERS
from patcher.facts.flow import Definition, Flow
from patcher.facts.sizes import Sizes
from patcher.facts.torch_api import INT64

_TYPED = frozenset({"torch.IntTensor", "torch.LongTensor"})
_MAKERS = frozenset({"torch.tensor", "torch.as_tensor"})
_WHOLE = INT64 | {"torch.int32", "torch.int"}
#: What becomes of all elements -> how Python says it.
_TOGETHER = {"max": "max", "min": "min", "sum": "sum", "prod": "prod"}
#: What carries the same numbers on.
_CARRIED = frozenset({"cpu", "detach", "clone", "contiguous", "cuda"})


_READING = frozenset("item tolist shape dtype device ndim size numel dim".split()) | set(_TOGETHER)
#: What gives a tensor another shape in place.
_RESHAPING = frozenset("resize_ resize_as_ unsqueeze_ squeeze_ transpose_ t_ swapaxes_ swapdims_ set_ data".split())


@dataclass(frozen=True)
class Known:
    """An integer: all of ``parts`` joined as ``how`` says.

    ``how``: "part" (there is one), "whole" (one, through ``int()``), "max", "min", "sum", "prod", or "shape" (the
    product of the sizes that the one part is).
    """

    how: str
    parts: tuple[ast.expr, ...]


@dataclass(frozen=True)
class _Made:
    """Elements of a tensor: ``exprs``, or the sizes that ``shape`` is. ``flat``: it has no dimension."""

    exprs: tuple[ast.expr, ...]
    flat: bool
    whole: bool
    shape: ast.expr | None = None


class KnownNumbers(Analysis):
    """Which elements of tensors the code of one module knows without asking the tensor."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sizes = facts.ask(Sizes)

    def scalar(self, e: ast.expr) -> Known | None:
        """The integer that ``e``, a tensor of one element, holds; None when it is not known."""
        known = self._scalar(e)
        return known if known is not None and all(self._steady(p, e) for p in known.parts) else None

    def _scalar(self, e: ast.expr) -> Known | None:
        made = self._made(e, e)
        if made is not None and made.shape is None and len(made.exprs) == 1:
            return Known("whole" if made.whole else "part", made.exprs)
        match e:
            case ast.Subscript(value=base, slice=index):
                return self._element(self._made(base, e), index)
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[], keywords=[]) if attr in _TOGETHER:
                return self._together(self._made(base, e), _TOGETHER[attr])
            case ast.Call(args=[base], keywords=[]):
                owner, _, last = (self.syntax.qualified(e.func) or "").rpartition(".")
                if owner == "torch" and last in _TOGETHER:
                    return self._together(self._made(base, e), _TOGETHER[last])
        return None

    def _element(self, made: _Made | None, index: ast.expr) -> Known | None:
        sign = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
        number = index.operand if isinstance(index, ast.UnaryOp) and sign else index
        if made is None or made.flat or made.shape is not None or not isinstance(number, ast.Constant):
            return None
        at = number.value
        if type(at) is not int or not -len(made.exprs) <= (at := -at if sign else at) < len(made.exprs):
            return None
        return Known("whole" if made.whole else "part", (made.exprs[at],))

    def _together(self, made: _Made | None, how: str) -> Known | None:
        if made is None or made.flat:
            return None
        if made.shape is not None:
            return Known("shape", (made.shape,)) if how == "prod" else None
        return Known(how, made.exprs) if made.exprs and not made.whole else None

    def _made(self, e: ast.expr, asked: ast.expr, depth: int = 6) -> _Made | None:
        """The elements of the tensor ``e``, when the code that makes it is in sight; ``asked`` does not change it."""
        if depth == 0:
            return None
        match e:
            case ast.Name():
                d = self._only(e)
                if d is None or d.value is None or self._changed(d, asked):
                    return None
                return self._made(d.value, asked, depth - 1)
            case ast.Call(func=ast.Attribute(value=base, attr=attr), args=[], keywords=[]) if attr in _CARRIED:
                return self._made(base, asked, depth - 1)
            case ast.Call(args=[content], keywords=keywords):
                what = self.syntax.qualified(e.func)
                given = {k.arg: k.value for k in keywords}
                dtype = given.pop("dtype", None)
                if set(given) - {"device"} or (dtype is not None and self.syntax.qualified(dtype) not in _WHOLE):
                    return None
                fresh = isinstance(e.func, ast.Attribute) and e.func.attr == "new_tensor" and dtype is not None
                if what in _MAKERS or fresh or (what in _TYPED and isinstance(content, (ast.List, ast.Tuple))):
                    return self._content(content, dtype is not None or what in _TYPED)
        return None

    def _content(self, content: ast.expr, whole: bool) -> _Made | None:
        if self.sizes.is_shape(content):  # of nothing, the product is a float
            return _Made((), False, False, content) if whole or self._has_sizes(content) else None
        flat = not isinstance(content, (ast.List, ast.Tuple))
        elements = content.elts if isinstance(content, (ast.List, ast.Tuple)) else [content]
        # True is an int as well, for all that annotations say
        sure = all(self.sizes.is_count(x) if whole else self._int(x) for x in elements)
        numbers = all(map(self._is_number, elements))
        if not (sure or (whole and numbers)) or not all(map(self._pure, elements)):
            return None
        return _Made(tuple(elements), flat, not sure)

    def _is_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is a number. Of an attribute its class alone is asked: ``int()`` takes what others make it."""
        own = self.inference.instance_attribute(e)
        value = self.inference.of(e) if own is None else self.inference.stored(*own)
        return value.is_number and not value.data

    def _has_sizes(self, shape: ast.expr) -> bool:
        """Whether the tensor that ``shape`` is the shape of is known to have a dimension."""
        match shape:
            case ast.Attribute(value=base) | ast.Call(func=ast.Attribute(value=base)):
                rank = self.inference.of(base).rank
                return rank is not None and rank.offset > 0
        return False

    def _int(self, e: ast.expr) -> bool:
        value = self.inference.of(e)
        return (value.python in ("int", "size") and not value.data) or self.sizes.is_count(e)

    def _pure(self, e: ast.expr) -> bool:
        """Whether ``e`` can be evaluated a second time, elsewhere."""
        calls = (n for n in ast.walk(e) if isinstance(n, (ast.Call, ast.NamedExpr, ast.Await, ast.Lambda)))
        return all(isinstance(n, ast.Call) and self._measures(n) for n in calls)

    def _measures(self, call: ast.Call) -> bool:
        """Whether ``call`` asks a tensor for a size."""
        counts = isinstance(call.func, ast.Attribute) and call.func.attr in ("numel", "nelement", "dim", "ndimension")
        return self.sizes.is_size(call) or (counts and not call.args)

    def _only(self, name: ast.Name) -> Definition | None:
        found = self.inference.definitions(name)
        d = next(iter(found)) if len(found) == 1 else None
        return d if d is not None and d.how == "assign" and not d.path else None

    def _changed(self, d: Definition, asked: ast.expr) -> bool:
        """Whether the tensor that ``d`` binds may be changed: anything but reading it is too much."""
        function = self.syntax.function_of(d.node)
        if function is None or d.name in self.flow_of(function).captured:
            return True
        return not all(self._reads(use, asked) for use in self.flow_of(function).uses.get(d, []))

    def _reads(self, use: ast.expr, asked: ast.expr) -> bool:
        """Whether a number comes out of ``use``, or something that shares no memory with it."""
        parent = self.syntax.parents[use]
        match parent:
            case ast.Attribute(attr=attr, ctx=ast.Load()):
                call = self.syntax.parents[parent]
                if attr in _CARRIED and isinstance(call, ast.Call):
                    return attr == "clone" or self._reads(call, asked)
                return attr in _READING
            case ast.Subscript(value=value, ctx=ast.Load()) if value is use:
                return parent is asked or self._reads(parent, asked)
            case ast.Call(func=func):
                name = self.syntax.qualified(func) or ast.unparse(func)
                return name in ("int", "range", "bool", "float") or name in {f"torch.{n}" for n in _TOGETHER}
        return isinstance(parent, (ast.BinOp, ast.Compare, ast.Slice))

    def _steady(self, part: ast.expr, at: ast.expr) -> bool:
        """Whether ``part`` has the value that it had where the tensor was made, at ``at`` as well."""
        function = self.syntax.function_of(at)
        if function is None or self.syntax.function_of(part) is not function:
            return False
        flow = self.flow_of(function)
        for n in ast.walk(part):
            if isinstance(n, ast.Attribute) and not self._constant(n):
                return False
            if isinstance(n, ast.Name) and not self._unchanged(n, at, flow):
                return False
            if isinstance(n, ast.Subscript) and not self.sizes.is_size(n) and not self.sizes.is_shape(n):
                return False
        return True

    def _in_loop(self, d: Definition) -> bool:
        for parent in self.syntax.ancestors(d.node):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False
            if isinstance(parent, (ast.For, ast.While, ast.AsyncFor)):
                return True
        return False

    def _constant(self, n: ast.Attribute) -> bool:
        """Whether only constructors of this file assign an attribute of that name; a tensor keeps its shape."""
        if n.attr in ("shape", "ndim", "size", "numel", "nelement", "dim", "ndimension"):
            return True
        for other in self.syntax.by_type[ast.Attribute]:
            if isinstance(other, ast.Attribute) and other.attr == n.attr and not isinstance(other.ctx, ast.Load):
                method = self.syntax.method_of(other)
                if method is None or method.name not in INITIALISERS:
                    return False
        return True

    def _unchanged(self, name: ast.Name, at: ast.expr, flow: Flow) -> bool:
        """Whether no assignment stands between ``name`` and ``at``: the function binds it once, or never."""
        bound = [d for d in flow.by_node.values() if d.name == name.id]
        reshaped = any(
            isinstance(n, ast.Attribute) and n.attr in _RESHAPING and ast.unparse(n.value) == name.id
            for n in ast.walk(flow.function)
        )
        once = len(bound) <= 1 and not any(d.how not in ("parameter", "assign") or self._in_loop(d) for d in bound)
        return name.id not in flow.captured and once and not reshaped
