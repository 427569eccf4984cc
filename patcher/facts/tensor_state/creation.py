"""Expressions that make integer tensors, and the Python integers that say the same."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.gradient_mode import GradientMode
from patcher.facts.tensor_state.forms import Change, Form, RefusedError, Step
from patcher.facts.values.sizes import Sizes
from patcher.facts.values.types import Category, Kind

_WIDE = frozenset({"torch.int", "torch.int32", "torch.int64", "torch.long"})
_FILLED = {"torch.zeros": "0", "torch.ones": "1"}
_LIKE = {"torch.zeros_like": "0", "torch.ones_like": "1"}
#: Methods that give the same integers, be it elsewhere or in another integer type.
_SAME = frozenset("to long int cpu cuda clone contiguous detach".split())
_HARMLESS = frozenset({"dtype", "device", "requires_grad", "pin_memory"})


@dataclass(frozen=True)
class Made:
    """``form`` is None for an empty list."""

    form: Form | None
    changes: tuple[Change, ...] = ()


class Creations(Analysis):
    """Recognises what makes integer tensors in one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.sizes = facts.ask(Sizes)

    def made(self, e: ast.expr) -> Made | None:
        """What ``e`` makes, or None when it is no integer tensor (nor a list of such) that is understood.

        Raises RefusedError for integers that would not behave as Python's do.
        """
        match e:
            case ast.List(elts=[]):
                return Made(None)
            case ast.ListComp(elt=element):
                inner = self.made(element)
                return Made(Form.LIST, inner.changes) if inner is not None and inner.form is Form.NUMBER else None
            case ast.List(elts=elements):
                each = [m for m in map(self.made, elements) if m is not None and m.form is Form.NUMBER]
                return (
                    Made(Form.LIST, tuple(c for m in each for c in m.changes)) if len(each) == len(elements) else None
                )
            case (
                ast.BinOp(op=ast.Mult(), left=ast.List(elts=[only]))
                | ast.BinOp(op=ast.Mult(), right=ast.List(elts=[only]))
            ) if self.made(only) is not None:
                raise RefusedError(e, "one tensor stands for all elements of the list")
            case ast.Call():
                made = self._call(e, e)
                if made is not None and self.facts.ask(GradientMode).in_inference_mode(e):
                    raise RefusedError(e, "what is made in inference mode cannot be changed outside of it")
                return made
        return None

    def is_integer(self, e: ast.expr) -> bool:
        """Whether ``e`` is an integer tensor, or a list of such, as far as is known."""
        match e:
            case ast.ListComp(elt=element):
                return self.is_integer(element)
            case ast.List(elts=[first, *_]):
                return self.is_integer(first)
            case ast.BinOp(op=ast.Mult(), left=ast.List(elts=[only])):
                return self.is_integer(only)
        value = self.inference.of(e)
        if value.is_tensor and value.dtype is not None and value.dtype.category is Category.INT:
            return True
        try:
            made = self.made(e)
        except RefusedError:
            return True
        return made is not None and made.form is not None

    def _call(self, call: ast.Call, target: ast.expr) -> Made | None:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SAME and isinstance(call.func.value, ast.Call):
            cast = call.func.attr if call.func.attr in ("long", "int") else ""
            if call.func.attr == "to" and not self._keeps_integers(call):
                return None
            return self._call_of_torch(call.func.value, target, cast=bool(cast))
        return self._call_of_torch(call, target)

    def _keeps_integers(self, call: ast.Call) -> bool:
        """Whether the arguments of ``.to()`` are a device, or a wide integer type."""
        given = [*call.args, *(k.value for k in call.keywords)]
        return all(self.is_device(a) or self._wide(a) for a in given)

    def is_device(self, e: ast.expr) -> bool:
        """Whether ``e`` names a device, as far as can be told."""
        if isinstance(e, ast.Constant):
            return isinstance(e.value, str)
        if self.inference.of(e).python == "dtype":
            return False
        last = e.attr if isinstance(e, ast.Attribute) else e.id if isinstance(e, ast.Name) else ""
        return "device" in last or self.syntax.qualified(e.func if isinstance(e, ast.Call) else e) == "torch.device"

    def _wide(self, e: ast.expr) -> bool:
        if isinstance(e, ast.Name) and e.id == "int" and self.syntax.is_builtin(e):
            return True
        return self.syntax.qualified(e) in _WIDE

    def _call_of_torch(self, call: ast.Call, target: ast.expr, cast: bool = False) -> Made | None:
        what = self.syntax.qualified(call.func) or ""
        if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
            return None
        given = {str(k.arg): k.value for k in call.keywords}
        dtype = given.get("dtype")
        if dtype is not None and not self._wide(dtype):
            if self.inference.of(dtype).python == "dtype" and "int" in (self.syntax.qualified(dtype) or ""):
                raise RefusedError(call, f"`{ast.unparse(dtype)}` wraps round where a Python integer goes on")
            return None
        if set(given) - _HARMLESS - {"size", "fill_value", "data"}:
            return None
        integral = cast or dtype is not None
        if what in _FILLED and integral:
            size = [given["size"]] if "size" in given else call.args
            return self._sized(size, _FILLED[what], target)
        if what in _LIKE and len(call.args) == 1 and dtype is None:
            return self._like(call.args[0], _LIKE[what], target)
        match what, [*call.args, *(given[k] for k in ("fill_value", "data") if k in given)]:
            case "torch.full", [shape, fill] if "size" not in given:
                return self._sized([shape], fill, target) if self.is_int(fill) else None
            case "torch.tensor" | "torch.as_tensor", [single]:
                return self._value(single, target)
            case "torch.arange", [count] if self.is_int(count):
                return Made(Form.ROW, (Change(Step.COUNTED, target, (count,)),))
        return None

    def _value(self, value: ast.expr, target: ast.expr) -> Made | None:
        change = (Change(Step.VALUE, target, (value,)),)
        match value:
            case ast.List(elts=[only]) if self.is_int(only):
                return Made(Form.ONE, change)
            case ast.List(elts=[_, *_] as several) if all(map(self.is_int, several)):
                return Made(Form.ROW, change)
            case ast.ListComp(elt=element) if self.is_int(element):
                return Made(Form.ROW, change)
            case ast.BinOp(left=ast.List(elts=[only]), op=ast.Mult()) if self.is_int(only):
                return Made(Form.ROW, change)
        return Made(Form.NUMBER, change) if self.is_int(value) else None

    def _sized(self, size: list[ast.expr], value: ast.expr | str, target: ast.expr) -> Made | None:
        if len(size) == 1 and isinstance(size[0], (ast.Tuple, ast.List)):
            size = list(size[0].elts)
        if not size:
            return Made(Form.NUMBER, (Change(Step.VALUE, target, (value,)),))
        if len(size) > 1 or isinstance(size[0], ast.Starred) or self._may_be_shape(size[0]):
            return None
        one = isinstance(size[0], ast.Constant) and size[0].value == 1
        return Made(Form.ONE if one else Form.ROW, (Change(Step.REPEAT, target, (value, size[0])),))

    def _may_be_shape(self, e: ast.expr) -> bool:
        value = self.inference.of(e)
        if self.sizes.is_shape(e) or (isinstance(e, ast.Subscript) and isinstance(e.slice, ast.Slice)):
            return True
        return value.is_tensor or value.python in ("container", "str", "none", "float", "bool", "foreign")

    def _like(self, other: ast.expr, value: str, target: ast.expr) -> Made | None:
        """``zeros_like`` of another attribute; that it is a row of integers is for the caller to see."""
        if self.inference.instance_attribute(other) is None or not self.is_integer(other):
            return None
        return Made(Form.ROW, (Change(Step.ALIKE, target, (other, value)),))

    def is_int(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python int for sure."""
        if isinstance(e, ast.Constant):
            return type(e.value) is int
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            return self.is_int(e.operand)
        value = self.inference.of(e)
        return value.kind is Kind.PYTHON and value.python in ("int", "size")
