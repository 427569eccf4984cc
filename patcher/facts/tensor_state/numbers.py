"""Which expressions of a class are Python integers, now or once its state is held in Python integers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from patcher.facts.analysis import Analysis
from patcher.facts.caching.origins import Origins
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import own_nodes
from patcher.facts.tensor_state.forms import ARITHMETIC, Form
from patcher.facts.values.sizes import Sizes
from patcher.facts.values.types import Kind, Value


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
            case ast.Call(func=ast.Name(), args=arguments) if self.syntax.builtin(e) in ("max", "min", "abs"):
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
        value, left = d.part
        return self.form(value) if value is not None and not left else None

    # --- Python's integers -------------------------------------------------------------------------------------------

    def is_sure(self, e: ast.expr) -> bool:
        """Whether ``e`` is or becomes a Python integer without anybody's word for it, be it an annotation."""
        return self._integer(e, True)

    def is_number(self, e: ast.expr) -> bool:
        """Whether ``e`` is a Python integer as far as is known: a constant, a size, a number read out of the state."""
        return self._integer(e, False)

    def is_size(self, e: ast.expr) -> bool:
        """Whether ``e`` is a size of a tensor, or a number of elements: the same whenever it is evaluated."""
        counted = isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and e.func.attr in ("numel", "nelement")
        return counted or self.sizes.is_size(e) or self.syntax.builtin(e) == "len"

    def _integer(self, e: ast.expr, sure: bool) -> bool:
        match e:
            case ast.Constant(value=value):
                return type(value) is int
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._integer(operand, sure)
            case ast.BinOp(left=a, op=op, right=b) if isinstance(op, ARITHMETIC):
                return self._integer(a, sure) and self._integer(b, sure)
            case ast.IfExp(body=a, orelse=b):
                return self._integer(a, sure) and self._integer(b, sure)
            case ast.Call(func=ast.Name(id="max" | "min" | "abs") as func, args=arguments):
                return self.syntax.is_builtin(func) and all(self._integer(a, sure) for a in arguments)
            case ast.Call(func=ast.Name(id="int" | "len" as name) as func, args=[argument]):
                known = sure or name == "len" or self.is_number(argument) or not self._reads_data(argument)
                return known and self.syntax.is_builtin(func)
            case ast.Call(func=ast.Attribute(value=base, attr="item"), args=[]):
                return self.form(base) in (Form.NUMBER, Form.ONE)
            case ast.Call(func=ast.Attribute(attr="numel" | "nelement"), args=[]):
                return True
            case ast.Attribute() | ast.Subscript() if sure and self.form(e) is Form.NUMBER:
                return True
            case ast.Call(func=ast.Attribute(value=base)) if sure and self.form(e) is Form.NUMBER:
                return self.form(base) in (Form.ROW, Form.LIST) or self._integer(base, sure)
            case ast.Name():
                found = self.inference.definitions(e)
                return bool(found) and self._once([e], lambda: all(self._binds(d, sure) for d in found))
        if sure:
            return self.sizes.is_size(e)
        own = self.origins.attribute(e.func if isinstance(e, ast.Call) else e)
        if own is not None and own in self.origins.own:
            return self._returns_number(own)
        return self._is_python(self.inference.of(e)) or self.sizes.is_size(e)

    def _once(self, nodes: Iterable[ast.AST], ask: Callable[[], bool]) -> bool:
        """What ``ask`` says about ``nodes``; where that leads to them again, they are what they are asked to be."""
        if not self._open.isdisjoint(nodes):
            return True
        self._open.update(nodes)
        try:
            return ask()
        finally:
            self._open.difference_update(nodes)

    def _is_python(self, value: Value) -> bool:
        return value.kind is Kind.PYTHON and value.python in ("int", "size") and not value.data

    def _returns_number(self, method: str) -> bool:
        """Whether the class's own method or property returns Python integers only."""
        functions = self.origins.own[method]
        found = [r.value for f in functions for r in own_nodes(f) if isinstance(r, ast.Return)]
        return bool(found) and self._once(functions, lambda: all(v is not None and self.is_number(v) for v in found))

    def _reads_data(self, e: ast.expr) -> bool:
        """Whether ``int(e)`` reads a tensor that is no state of this class."""
        value = self.inference.of(e)
        return self.form(e) is None and (value.is_tensor or value.data)

    def binds_number(self, d: Definition) -> bool:
        """Whether ``d`` binds a Python integer, None, or what becomes one."""
        if d.how == "assign" and not d.path and isinstance(d.value, ast.Constant) and d.value.value is None:
            return True
        return self._binds(d, False) or self._bound(d) is Form.NUMBER

    def _binds(self, d: Definition, sure: bool) -> bool:
        if d.how == "unbound":
            return not sure
        value, left = d.part
        if d.how == "assign" and value is not None:
            known = not sure and self.inference.defined(d).python in ("int", "size")
            return known or self.sizes.is_shape(value) if left else self._integer(value, sure)
        if d.how == "augmented" and isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name):
            both = self._integer(d.node.value, sure) and self._integer(d.node.target, sure)
            return isinstance(d.node.op, ARITHMETIC) and both
        if d.how == "iteration" and d.value is not None and len(d.path) <= 1:
            state = sure and not d.path and self.form(d.value) in (Form.ROW, Form.LIST)
            return state or self._iterates_numbers(d.value, d.path)
        return not sure and self._is_python(self.inference.defined(d))

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
