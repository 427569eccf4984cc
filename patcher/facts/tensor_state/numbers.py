"""Which expressions of a class are Python integers, now or once its state is held in Python integers."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from patcher.facts.analysis import Analysis
from patcher.facts.flow import Definition
from patcher.facts.origins import Origins
from patcher.facts.sizes import Sizes
from patcher.facts.syntax import dotted, own_nodes
from patcher.facts.tensor_state.forms import ARITHMETIC, Form
from patcher.facts.values import Kind


class Numbers(Analysis):
    """``forms``: the state, by attribute, that becomes Python's."""

    def __init__(self, forms: Mapping[str, Form], origins: Origins) -> None:
        super().__init__(origins.facts)
        self.forms = forms
        self.origins = origins
        self.sizes = self.facts.ask(Sizes)
        self._open: set[ast.AST] = set()

    def form(self, e: ast.expr) -> Form | None:
        """The form of ``e`` when it is the state, an element of it or computed from it in tensors; None otherwise."""
        match e:
            case ast.Attribute():
                name = self.origins.attribute(e)
                return self.forms.get(name) if name is not None else None
            case ast.Subscript(value=base, slice=index):
                inner = self.form(base)
                if inner in (Form.ROW, Form.LIST, Form.ONE) and not isinstance(index, (ast.Slice, ast.Tuple)):
                    return Form.NUMBER
                return None
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ARITHMETIC):
                forms = (self.form(left), self.form(right))
                if forms == (None, None) or Form.ROW in forms or Form.LIST in forms:
                    return None
                return (
                    Form.NUMBER
                    if all(f is not None or self._maybe_number(x) for f, x in zip(forms, (left, right), strict=True))
                    else None
                )
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Form.NUMBER if self.form(operand) in (Form.NUMBER, Form.ONE) else None
            case ast.IfExp(body=body, orelse=orelse):
                forms = (self.form(body), self.form(orelse))
                if forms[0] is forms[1]:
                    return forms[0]
                numbers = [f is Form.NUMBER or self.is_number(x) for f, x in zip(forms, (body, orelse), strict=True)]
                return Form.NUMBER if all(numbers) and forms != (None, None) else None
            case ast.Call(func=ast.Attribute(value=base, attr="clone" | "detach" | "cpu" | "contiguous"), args=[]):
                return self.form(base)
            case ast.Call(func=ast.Attribute(value=base, attr="max" | "min" | "sum" | "amax" | "amin"), args=[]):
                return Form.NUMBER if self.form(base) is Form.ROW else None
            case ast.Call(func=ast.Name(id="max" | "min" | "abs"), args=arguments):
                found = [self.form(a) for a in arguments]
                return Form.NUMBER if any(f in (Form.NUMBER, Form.ROW) for f in found) else None
            case ast.Name():
                return self._of_name(e)
        return None

    def _maybe_number(self, e: ast.expr) -> bool:
        return not self.inference.of(e).is_tensor

    def _of_name(self, name: ast.Name) -> Form | None:
        if name in self._open:
            return None
        self._open.add(name)
        try:
            found = {self._bound(d) for d in self.inference.definitions(name)}
        finally:
            self._open.discard(name)
        found.discard(None)
        return found.pop() if len(found) == 1 else None

    def _bound(self, d: Definition) -> Form | None:
        if d.how == "iteration" and isinstance(d.node, ast.Name) and not d.path and d.value is not None:
            return Form.NUMBER if self.form(d.value) in (Form.ROW, Form.LIST) else None
        if d.how != "assign" or d.value is None:
            return None
        value = d.value
        for position in d.path:
            if not isinstance(value, (ast.Tuple, ast.List)) or position >= len(value.elts):
                return None
            value = value.elts[position]
        return self.form(value)

    def is_sure(self, e: ast.expr) -> bool:
        """Whether ``e`` is or becomes a Python integer without anybody's word for it, be it an annotation."""
        match e:
            case ast.Constant(value=value):
                return type(value) is int
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.is_sure(operand)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ARITHMETIC):
                return self.is_sure(left) and self.is_sure(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_sure(body) and self.is_sure(orelse)
            case ast.Call(func=ast.Name(id="max" | "min" | "abs") as func, args=arguments):
                return self.syntax.is_builtin(func) and all(map(self.is_sure, arguments))
            case ast.Call(func=ast.Name(id="int" | "len") as func, args=[_]):
                return self.syntax.is_builtin(func)
            case (
                ast.Call(func=ast.Attribute(attr="item"), args=[])
                | ast.Call(func=ast.Attribute(attr="numel" | "nelement"), args=[])
            ):
                return self.is_number(e)
            case ast.Attribute() | ast.Subscript() if self.form(e) is Form.NUMBER:
                return True
            case ast.Name():
                return self._name_is_sure(e)
        return self.sizes.is_size(e)

    def is_size(self, e: ast.expr) -> bool:
        """Whether ``e`` is a size of a tensor, or a number of elements: the same whenever it is evaluated."""
        counted = isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in ("numel", "nelement")
        return counted or self.sizes.is_size(e) or (isinstance(e, ast.Call) and dotted(e.func) == "len")

    def _name_is_sure(self, name: ast.Name) -> bool:
        if name in self._open:
            return True
        self._open.add(name)
        try:
            found = self.inference.definitions(name)
            return bool(found) and all(map(self._binds_sure, found))
        finally:
            self._open.discard(name)

    def _binds_sure(self, d: Definition) -> bool:
        if d.how == "assign" and d.value is not None:
            value: ast.expr = d.value
            for position in d.path:
                if not isinstance(value, (ast.Tuple, ast.List)) or position >= len(value.elts):
                    return self.sizes.is_shape(value)
                value = value.elts[position]
            return self.is_sure(value)
        if d.how == "augmented" and isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name):
            return isinstance(d.node.op, ARITHMETIC) and self.is_sure(d.node.value) and self.is_sure(d.node.target)
        if d.how == "iteration" and d.value is not None:
            state = not d.path and self.form(d.value) in (Form.ROW, Form.LIST)
            return state or (len(d.path) <= 1 and self._iterates_numbers(d.value, d.path))
        return False

    def is_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python integer as far as is known: a constant, a size, a number read out of the state."""
        match e:
            case ast.Constant(value=value):
                return type(value) is int
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.is_number(operand)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, ARITHMETIC):
                return self.is_number(left) and self.is_number(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_number(body) and self.is_number(orelse)
            case ast.Call(func=ast.Name(id="int" | "len" as name) as func, args=[argument]):
                known = name == "len" or self.is_number(argument) or not self._reads_data(argument)
                return known and self.syntax.is_builtin(func)
            case ast.Call(func=ast.Name(id="max" | "min") as func, args=[_, _, *_] as arguments):
                return self.syntax.is_builtin(func) and all(map(self.is_number, arguments))
            case ast.Call(func=ast.Attribute(value=base, attr="item"), args=[]):
                return self.form(base) in (Form.NUMBER, Form.ONE)
            case ast.Call(func=ast.Attribute(value=base, attr="numel" | "nelement"), args=[]):
                return True
            case ast.Name():
                return self._name_is_number(e)
            case ast.Call(func=func) if (own := self.origins.attribute(func)) in self.origins.own and own is not None:
                return self._returns_number(own)
            case ast.Attribute() if (own := self.origins.attribute(e)) in self.origins.own and own is not None:
                return self._returns_number(own)
        value_of = self.inference.of(e)
        if value_of.kind is Kind.PYTHON and value_of.python in ("int", "size") and not value_of.data:
            return True
        return self.sizes.is_size(e)

    def _returns_number(self, method: str) -> bool:
        """Whether the class's own method or property returns Python integers only."""
        functions = self.origins.own[method]
        if any(f in self._open for f in functions):
            return True
        self._open.update(functions)
        try:
            found = [r.value for f in functions for r in own_nodes(f) if isinstance(r, ast.Return)]
            return bool(found) and all(value is not None and self.is_number(value) for value in found)
        finally:
            self._open.difference_update(functions)

    def _reads_data(self, e: ast.expr) -> bool:
        """Whether ``int(e)`` reads a tensor that is no state of this class."""
        if self.form(e) is not None:
            return False
        value = self.inference.of(e)
        return value.is_tensor or value.data

    def _name_is_number(self, name: ast.Name) -> bool:
        if name in self._open:
            return True
        self._open.add(name)
        try:
            found = self.inference.definitions(name)
            return bool(found) and all(map(self._binds_python, found))
        finally:
            self._open.discard(name)

    def binds_number(self, d: Definition) -> bool:
        """Whether ``d`` binds a Python integer, None, or what becomes one."""
        if d.how == "assign" and not d.path and isinstance(d.value, ast.Constant) and d.value.value is None:
            return True
        return self._binds_python(d) or self._bound(d) is Form.NUMBER

    def _binds_python(self, d: Definition) -> bool:
        if d.how == "unbound":
            return True
        if d.how == "assign" and d.value is not None:
            value: ast.expr = d.value
            for position in d.path:
                if not isinstance(value, (ast.Tuple, ast.List)) or position >= len(value.elts):
                    return self.inference.defined(d).python in ("int", "size") or self.sizes.is_shape(value)
                value = value.elts[position]
            return self.is_number(value)
        if d.how == "augmented" and isinstance(d.node, ast.AugAssign):
            assert isinstance(d.node.target, ast.Name)
            return isinstance(d.node.op, ARITHMETIC) and self.is_number(d.node.value) and self.is_number(d.node.target)
        if d.how == "iteration" and d.value is not None and len(d.path) <= 1:
            return self._iterates_numbers(d.value, d.path)
        value_of = self.inference.defined(d)
        return value_of.kind is Kind.PYTHON and value_of.python in ("int", "size") and not value_of.data

    def _iterates_numbers(self, e: ast.expr, path: tuple[int, ...]) -> bool:
        """Whether going through ``e`` gives integers: ``range``, ``enumerate``, a list that was made of such."""
        match e:
            case ast.Call(func=ast.Name(id="range") as func):
                return not path and self.syntax.is_builtin(func)
            case ast.Call(func=ast.Name(id="enumerate") as func, args=[inner, *_]):
                return self.syntax.is_builtin(func) and (
                    path == (0,) or (path == (1,) and self._iterates_numbers(inner, ()))
                )
            case ast.Call(func=ast.Name(id="sorted" | "list" | "reversed" | "tuple") as func, args=[inner]):
                return self.syntax.is_builtin(func) and self._iterates_numbers(inner, path)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return not path and self.is_number(element)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) if elements:
                return not path and all(map(self.is_number, elements))
            case ast.Name():
                found = self.inference.definitions(e)
                return bool(found) and all(
                    d.how == "assign" and not d.path and d.value is not None and self._iterates_numbers(d.value, path)
                    for d in found
                )
        return False
