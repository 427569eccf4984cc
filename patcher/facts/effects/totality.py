"""What evaluating an expression may do besides giving a value: raise, touch state, draw random numbers, alias."""

from __future__ import annotations

import ast

from patcher.facts import Facts
from patcher.facts.effects.aliasing import Aliasing
from patcher.facts.project.does import in_place
from patcher.facts.syntax.tree import dotted
from patcher.facts.syntax.written import is_none, short
from patcher.facts.tables import torch_api as api
from patcher.facts.values.certainty import Certainty
from patcher.facts.values.types import Category, Kind, Value, broadcast

#: Operations that raise for integers.
_FLOAT_ONLY = frozenset(
    "mean softmax log_softmax softplus silu gelu mish elu selu celu hardswish hardsigmoid logsigmoid leaky_relu "
    "hardtanh relu6".split()
)
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult)
#: The largest number of single precision, and the smallest that has all of its digits.
_LARGEST, _SMALLEST = 2.0**128 - 2.0**104, 2.0**-126

#: What computes each element by itself, and those of them that may be given numbers.
_BY_ELEMENT = api.SMOOTH_SAME | api.SMOOTH_FLOAT | api.STEEP_FLOAT | api.PREDICATES | frozenset(api.CASTS)
_TAKE_NUMBERS = frozenset(n for n in _BY_ELEMENT if n.startswith("clamp")) | frozenset(
    "clip softplus elu leaky_relu nan_to_num celu".split()
)


class Effects(Aliasing):
    """Purity, totality, smoothness and aliasing of expressions."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._certainty = facts.ask(Certainty)

    def why_not_total(self, e: ast.expr) -> str | None:
        """None when ``e`` can be evaluated where the source did not: no effect, no error; else the reason it cannot."""
        of = self.inference.of
        match e:
            case ast.Constant():
                return None
            case ast.Name():
                definitions = self.inference.definitions(e)
                if any(d.how == "unbound" for d in definitions):
                    return f"`{e.id}` may be unbound"
                return None
            case ast.Attribute(value=base):
                if (own := self.inference.instance_attribute(e)) is not None:
                    if not self.inference.surely_set(*own):
                        return f"`{short(e)}` may not be set"
                    if any(self._unchanged.writes.of(e)):
                        return f"`{short(e)}` may run code"
                    return None if of(e).kind is not Kind.UNKNOWN else f"what `{short(e)}` holds is not known"
                if of(e).is_number and isinstance(base, ast.Attribute):
                    return self.why_not_total(base) if of(base).kind is not Kind.UNKNOWN else None
                if e.attr in ("shape", "dtype", "device", "ndim") and of(base).is_tensor:
                    return self.why_not_total(base)
                if isinstance(base, ast.Call) and self.syntax.qualified(base.func) == "torch.finfo":
                    return self._why_not_finfo(base)
                if self.syntax.qualified(e) is not None and of(e).kind is Kind.PYTHON:
                    return None
                return f"`{short(e)}` may raise or run code"
            case ast.BinOp(left=left, op=op, right=right):
                return self._why_not_binary(e, left, op, right)
            case ast.UnaryOp(operand=operand):
                if isinstance(e.op, ast.Not) and of(operand).kind is not Kind.PYTHON:
                    return f"`not {short(operand)}` reads a tensor"
                if not self._takes(of(operand), e.op):
                    return f"`{short(e)}` may raise"
                return self.why_not_total(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                if isinstance(op, (ast.Is, ast.IsNot)):
                    return self.why_not_total(left) or self.why_not_total(right)
                if not isinstance(op, (ast.Eq, ast.NotEq)) and (_is_strange(of(left)) or _is_strange(of(right))):
                    return f"`{short(e)}` may raise"
                return self._why_not_pair(e, left, right)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                if of(test).kind is not Kind.PYTHON:
                    return f"`{short(test)}` may read a tensor"
                return self.why_not_total(test) or self.why_not_total(body) or self.why_not_total(orelse)
            case ast.Call():
                return self._why_not_call(e)
            case ast.Subscript(value=base, slice=index):
                return self._why_not_subscript(e, base, index)
        return f"`{short(e)}` may raise or have an effect"

    def _why_not_finfo(self, call: ast.Call) -> str | None:
        for a in call.args:
            if isinstance(a, ast.Attribute) and a.attr == "dtype":
                x = self.inference.of(a.value)
                if x.is_tensor and x.dtype is not None and x.dtype.category in (Category.FLOAT, Category.UNKNOWN):
                    return self.why_not_total(a.value)
        return f"`{short(call)}` may raise"

    def _why_not_binary(self, e: ast.expr, left: ast.expr, op: ast.operator, right: ast.expr) -> str | None:
        a, b = self.inference.of(left), self.inference.of(right)
        if isinstance(op, ast.Sub) and a.is_boolean and (b.is_boolean or not b.is_tensor):
            return f"`{short(e)}` may raise"
        if _is_strange(a) or _is_strange(b):
            return f"`{short(e)}` may raise"
        if isinstance(op, _ARITHMETIC):
            return self._why_not_pair(e, left, right)
        if isinstance(op, ast.Div):
            if not (a.is_tensor or b.is_tensor) and not self._nonzero(right):
                return f"`{short(e)}` may divide by zero"
            return self._why_not_pair(e, left, right)
        if isinstance(op, ast.Pow) and isinstance(right, ast.Constant) and isinstance(right.value, (int, float)):
            return self.why_not_total(left) if right.value >= 0 else f"`{short(e)}` may raise"
        if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            both = (a.dtype, b.dtype)
            if all(d is not None and d.category is Category.BOOL for d in both):
                return self._why_not_pair(e, left, right)
        return f"`{short(e)}` may raise"

    def _takes(self, value: Value, op: ast.unaryop) -> bool:
        """Whether a sign or ``~`` cannot fail on ``value``."""
        category = value.dtype.category if value.dtype is not None else None
        if isinstance(op, ast.Invert):
            return category in (Category.BOOL, Category.INT) or value.python == "int"
        signed = value.is_tensor and category not in (Category.BOOL, Category.OTHER)
        return isinstance(op, ast.Not) or signed or value.is_number

    def _why_not_pair(self, e: ast.expr, left: ast.expr, right: ast.expr) -> str | None:
        a, b = self.inference.of(left), self.inference.of(right)
        if a.is_tensor or b.is_tensor:
            if broadcast(a, b)[1] is None or not all(map(self._is_one, (left, right))):
                return f"the shapes in `{short(e)}` are not known to fit"
        elif not (a.is_number and b.is_number):
            return f"what `{short(e)}` holds is not known"
        return self.why_not_total(left) or self.why_not_total(right)

    def _why_not_subscript(self, e: ast.expr, base: ast.expr, index: ast.expr) -> str | None:
        x = self.inference.of(base)
        if x.python == "size":
            owner = base.value if isinstance(base, ast.Attribute) and base.attr == "shape" else None
            there = owner is not None and _has_dimension(self.inference.of(owner), index)
            return self.why_not_total(base) if there else f"`{short(e)}` may be out of range"
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if x.is_tensor and all(isinstance(p, ast.Slice) or _is_ellipsis(p) or is_none(p) for p in parts):
            slices = [p for p in parts if isinstance(p, ast.Slice)]
            bounds = [b for s in slices for b in (s.lower, s.upper) if b is not None]
            steps = [s.step for s in slices if s.step is not None]
            whole = all(self.inference.of(b).python in ("int", "size", "none") for b in bounds)
            forward = all(isinstance(s, ast.Constant) and s.value for s in steps)
            if whole and forward and sum(map(_is_ellipsis, parts)) < 2:
                rank = x.rank
                if not slices or (rank is not None and rank.offset >= len(slices)):
                    return self._first(base, *bounds)
        return f"`{short(e)}` may be out of range"

    def _why_not_call(self, e: ast.Call) -> str | None:
        if any(isinstance(a, ast.Starred) for a in e.args) or any(k.arg is None for k in e.keywords):
            return f"`{short(e)}` may raise"
        if (what := self.syntax.qualified(e.func)) is not None:
            return self._why_not_function(e, what)
        if not isinstance(e.func, ast.Attribute):
            return self._why_not_builtin(e)
        if self.inference.instance_attribute(e.func) is not None:
            return f"`{short(e.func)}` may have an effect or state of its own"
        return self._why_not_operation(e, e.func.attr, e.func.value, e.args)

    def _why_not_builtin(self, e: ast.Call) -> str | None:
        name = self.syntax.builtin(e)
        numbers = {"float": 1, "abs": 1, "min": 2, "max": 2}.get(name) == len(e.args) and not e.keywords
        numbers = numbers and all(self.inference.of(a).is_number for a in e.args)
        length = name == "len" and len(e.args) == 1 and _has_dimension(self.inference.of(e.args[0]), ast.Constant(0))
        if numbers or length:
            return self._first(*e.args)
        return f"`{short(e.func)}` may raise or have an effect"

    def _why_not_function(self, e: ast.Call, what: str) -> str | None:
        of = self.inference.of
        if what in api.RANDOM:
            return f"`{short(e.func)}` draws random numbers"
        name = what.rpartition(".")[2]
        if not what.startswith("torch.") or not e.args:
            return f"`{short(e.func)}` may raise or have an effect"
        if name in ("zeros_like", "ones_like", "full_like") and of(e.args[0]).is_tensor:
            return self._first(*e.args, *(k.value for k in e.keywords))
        if name == "where" and len(e.args) == 3 and not e.keywords:
            if not of(e.args[0]).is_boolean:
                return f"`{short(e.args[0])}` is not known to be boolean"
            for a, b in ((e.args[1], e.args[2]), (e.args[0], e)):
                if broadcast(of(a), of(b))[1] is None:
                    return f"the shapes in `{short(e)}` are not known to fit"
            return self._first(*e.args)
        return self._why_not_operation(e, name, e.args[0], e.args[1:])

    def _why_not_operation(self, e: ast.Call, name: str, receiver: ast.expr, rest: list[ast.expr]) -> str | None:
        """``name`` of a tensor, as a method or a function of PyTorch."""
        of, x = self.inference.of, self.inference.of(receiver)
        given = [*rest, *(k.value for k in e.keywords)]
        if not x.is_tensor:
            return f"what `{short(receiver)}` holds is not known"
        if in_place(e, name):
            return f"`{short(e)}` changes a tensor in place"
        if not _accepts(name, x):
            return f"`{short(e)}` may raise for integers"
        if name in _BY_ELEMENT:
            if name in _TAKE_NUMBERS:
                if not all(self.is_number(a) or of(a).python == "none" for a in given):
                    return f"the shapes in `{short(e)}` are not known to fit"
                if name.startswith("cl") and all(of(a).python == "none" for a in given):
                    return f"`{short(e)}` may raise"
            elif rest and name != "gelu":
                return f"`{short(e)}` may raise"
            return self._first(receiver, *given)
        if name == "size":
            plain = not e.keywords and (not rest or (len(rest) == 1 and _has_dimension(x, rest[0])))
            return self._first(receiver) if plain else f"`{short(e)}` may raise"
        if name in ("detach", "dim", "numel", "sum", "mean", "any", "all"):
            if name == "mean" and _is_strange(x):
                return f"`{short(e)}` may raise"
            return self._first(receiver) if not given else f"`{short(e)}` may raise"
        if name in ("to", "type_as"):
            if all(of(a).python == "dtype" or of(a).is_tensor or _is_device(a) for a in given):
                return self._first(receiver, *(a for a in given if of(a).is_tensor))
            return f"`{short(e)}` may raise"
        if name in ("softmax", "log_softmax") and [short(d) for d in given] == ["-1"]:
            return self._first(receiver)
        return f"`{short(e)}` may raise or have an effect"

    def is_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python number, and not a tensor either that a caller gives for what is said to be one."""
        return self.inference.of(e).is_number and self._is_one(e)

    def _is_one(self, e: ast.expr) -> bool:
        """Whether ``e``, if it is held to be a number, is more than said to be one by an annotation."""
        return not self.inference.of(e).is_number or self._certainty.is_number(e)

    def _nonzero(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python number that is written down somewhere, and is not 0 in single precision either."""
        value = self.inference.of(e)
        return value.is_number and isinstance(value.constant, (int, float)) and abs(value.constant) >= _SMALLEST

    def _first(self, *parts: ast.expr) -> str | None:
        for part in parts:
            reason = self.why_not_total(part)
            if reason is not None:
                return reason
        return None

    def why_not_smooth(self, e: ast.expr) -> str | None:
        """None when the gradient through ``e`` is finite at all finite inputs; else what may make it infinite."""
        of = self.inference.of
        for node in ast.walk(e):
            if isinstance(node, ast.expr) and _is_infinite(of(node)):
                return f"`{short(node)}` is infinite"
            if not isinstance(node, ast.expr) or not of(node).is_tensor:
                continue
            value = of(node)
            if value.trainable:
                return f"`{short(node)}` would get a zero gradient in place of none"
            match node:
                case ast.BinOp(op=ast.Div(), right=right):
                    if not self._nonzero(right):
                        return f"the gradient of `{short(node)}` is infinite where `{short(right)}` is 0"
                case ast.BinOp(op=ast.Pow(), right=right):
                    # of a cube, float16 does not hold the gradient where it holds the number
                    if not (isinstance(right, ast.Constant) and right.value in (1, 2)):
                        return f"the gradient of `{short(node)}` may be infinite"
                case ast.Call(func=func):
                    name = func.attr if isinstance(func, ast.Attribute) else dotted(func)
                    if name in api.STEEP_FLOAT or name in ("norm", "std", "pow", "div", "prod"):
                        return f"the gradient of `{short(node)}` may be infinite"
        return None


def _is_strange(value: Value) -> bool:
    """Whether this is a tensor that may be complex, or may be one of booleans as well as of numbers."""
    return value.is_tensor and value.dtype is not None and value.dtype.category is Category.OTHER


def _is_infinite(value: Value) -> bool:
    """Whether that number is infinite, or is in single precision."""
    return isinstance(value.constant, float) and not abs(value.constant) <= _LARGEST


def _is_device(e: ast.expr) -> bool:
    return isinstance(e, ast.Attribute) and e.attr == "device"


def _accepts(name: str, x: Value) -> bool:
    """Whether the operation is there for the dtype of ``x``; an unknown one is taken to be floating."""
    category = x.dtype.category if x.dtype is not None else Category.UNKNOWN
    if category in (Category.BOOL, Category.OTHER):
        return name == "clone" or name not in api.SMOOTH_SAME | api.SMOOTH_FLOAT | _FLOAT_ONLY
    if category is Category.INT:
        return name not in _FLOAT_ONLY
    return True


def _has_dimension(x: Value, index: ast.expr) -> bool:
    """Whether ``index`` is a dimension that ``x``, a tensor, is known to have."""
    minus = isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub)
    value = index.operand if isinstance(index, ast.UnaryOp) and minus else index
    if not x.is_tensor or x.rank is None or not isinstance(value, ast.Constant) or type(value.value) is not int:
        return False
    return value.value <= x.rank.offset if minus else value.value < x.rank.offset


def _is_ellipsis(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and e.value is ...
