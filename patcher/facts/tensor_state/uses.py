"""Follows integer state through the methods of its class: what each use needs, and what it becomes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from patcher.facts.caching.bookkeeping import OUTSIDE
from patcher.facts.syntax.classes import INITIALISERS
from patcher.facts.syntax.tree import FunctionNode, dotted, last_name, own_nodes
from patcher.facts.tensor_state.forms import (
    ARITHMETIC,
    COUNTS,
    READS,
    ROWS,
    TAKE_NUMBERS_METHODS,
    Change,
    Form,
    MeantError,
    RefusedError,
    Step,
)
from patcher.facts.tensor_state.names import Names
from patcher.facts.tensor_state.order import base_of
from patcher.facts.tensor_state.record import is_large, keeps_dtype


class Uses(Names):
    """All uses of the state of one class. ``follow`` raises RefusedError where the state has to stay in tensors."""

    def follow(self) -> None:
        """Look at every place of the class that names the state."""
        for function in self.origins.methods:
            for n in self._nodes(function):
                name = self.origins.attribute(n)
                if name is not None and name in self.forms and isinstance(n, ast.Attribute):
                    self._place(n, self.forms[name])
        for attribute, value in self._plain:
            if attribute in self._asked:
                raise RefusedError(value, f"`{ast.unparse(value)}` is a number, put where a tensor is asked for more")
        self._compiled_in()
        self._meant()
        self._flags()
        for index in self._indices:
            if ast.unparse(index) not in self._proven:
                self._doubt(f"`{ast.unparse(index)}` is one integer")

    def _nodes(self, function: FunctionNode) -> Iterator[ast.AST]:
        yield from own_nodes(function)
        inner = [n for n in own_nodes(function) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
        for nested in inner:
            for n in ast.walk(nested):
                if isinstance(n, ast.Attribute) and n.attr in self.forms:
                    raise RefusedError(n, f"`{ast.unparse(n)}` is used in a function inside of the method")

    def _compiled_in(self) -> None:
        """Refuse integers that change from call to call where Dynamo compiles each value in, or gets it wrong.

        Bounds of slices stay dynamic, and so does the only index of a tensor. Measured on torch 2.13: ``x[:, n]`` with
        an ``n`` that advances, ``row[n]`` of a Python list, ``range(n)``, ``[0] * n`` and ``{n: x}`` compile again for
        each ``n`` until the limit is hit; ``f"{n}"`` alone gives the number in place of the text.
        """
        advancing = self.order.advancing()
        for function in self.origins.methods:
            if function.name in INITIALISERS or function.name in OUTSIDE:
                continue
            for n in own_nodes(function):
                for part in self._fixed_parts(n):
                    if self.origins.of(part) & advancing:
                        what = "takes one place or element by" if isinstance(n, ast.Subscript) else "is made of"
                        text = f"`{ast.unparse(n)}` {what} a number that advances"
                        raise RefusedError(n, f"{text}: as a Python integer it is compiled in, again for each value")
                if isinstance(n, ast.FormattedValue) or self._is_format(n):
                    value = n.value if isinstance(n, ast.FormattedValue) else n.args[0]  # type: ignore[attr-defined]
                    if self.origins.of(value) & advancing and not self._in_error(n):
                        text = f"`{ast.unparse(value)}` becomes text"
                        raise RefusedError(n, f"{text}, which Dynamo gets wrong with integers that advance")

    def _flags(self) -> None:
        """Comparisons that a method returns: of integers that advance they are symbolic, and no bool for operators."""
        advancing = self.order.advancing()
        for n in (n for f in self.origins.methods if f.name not in OUTSIDE for n in own_nodes(f)):
            if not isinstance(n, ast.Return) or n.value is None:
                continue
            for value in n.value.elts if isinstance(n.value, ast.Tuple) else [n.value]:
                for compare in self._compares(value):
                    if self.origins.of(compare) & advancing:
                        self.changes[compare] = Change(Step.BOOL, compare, (compare,))

    def _compares(self, e: ast.expr) -> list[ast.expr]:
        """The comparisons of numbers that the value of ``e`` may be; ``e`` itself when it is nothing else."""
        match e:
            case ast.BoolOp(values=values):
                return [c for v in values for c in self._compares(v)]
            case ast.IfExp(body=body, orelse=orelse):
                return [*self._compares(body), *self._compares(orelse)]
            case ast.Compare(left=left, comparators=others) if all(map(self._is_python, [left, *others])):
                return [e]
        return []

    def _is_python(self, e: ast.expr) -> bool:
        return self.numbers.is_number(e) and self.numbers.form(e) is None

    def _is_format(self, n: ast.AST) -> bool:
        return isinstance(n, ast.Call) and dotted(n.func) == "format" and len(n.args) > 1

    def _fixed_parts(self, n: ast.AST) -> list[ast.expr]:
        """The parts of ``n`` that are numbers which Dynamo compiles in."""
        match n:
            case ast.Subscript(value=base, slice=index):
                if (
                    not isinstance(index, ast.Tuple)
                    and self.inference.of(base).is_tensor
                    and not self.numbers.form(base)
                ):
                    return []
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return [p for p in parts if not isinstance(p, ast.Slice) and not self._is_other_tensor(p)]
            case ast.Call(func=ast.Name(id="range" | "hash"), args=arguments):
                return list(arguments)
            case (
                ast.BinOp(op=ast.Mult(), left=ast.List(), right=count)
                | ast.BinOp(op=ast.Mult(), left=count, right=ast.List())
            ):
                return [count]
            case ast.Dict(keys=keys):
                return [k for k in keys if k is not None]
        return []

    def _is_other_tensor(self, e: ast.expr) -> bool:
        tensor = self.inference.of(e).is_tensor and not self.numbers.is_number(e)
        return tensor and self.numbers.form(e) is None

    def _meant(self) -> None:
        """Refuse state that tensors are computed with and that the host reads beside the work only: meant as it is."""
        works = [f for r in self.reads if (f := self.syntax.function_of(r)) is not None and self._works(f)]
        if self.tensor_uses and not works:
            use = self.tensor_uses[0]
            raise MeantError(use, f"`{ast.unparse(use)}` computes with it as a tensor, as a captured graph needs it")

    def _works(self, function: FunctionNode) -> bool:
        """Whether ``function`` touches what else the object holds by an index."""
        return any(
            (
                isinstance(n, ast.Subscript)
                and (name := self.origins.attribute(base_of(n))) is not None
                and name not in self.forms
            )
            or (isinstance(n, ast.Call) and last_name(n.func) in TAKE_NUMBERS_METHODS)
            for n in own_nodes(function)
        )

    def _use(self, e: ast.expr, form: Form, binding: ast.AST | None, fixed: bool = False) -> None:
        """Look at ``e``, which was a tensor and becomes Python's, where it is read.

        ``binding``: where a name saw the state. ``fixed``: ``e`` may be an integer already, or something else, so
        nothing can be taken away around it.
        """
        self._in_time(e, binding if form is Form.NUMBER else None)
        parent = self.syntax.parents[e]
        match parent:
            case ast.Attribute():
                self._attribute(e, form, parent, binding, fixed)
            case ast.Subscript(value=value) if value is e:
                self._element(parent, form, binding)
            case ast.Subscript() | ast.Slice():
                self._as_index(e, form, isinstance(parent, ast.Slice))
            case ast.Tuple() if (
                isinstance(outer := self.syntax.parents[parent], ast.Subscript) and outer.slice is parent
            ):
                self._as_index(e, form, False)
            case ast.BinOp():
                self._arithmetic(e, form, parent, fixed)
            case ast.Compare():
                self._compared(e, form, parent)
            case ast.UnaryOp(op=ast.USub()):
                if self._single(e, form) is Form.ONE:
                    raise RefusedError(e, f"`{ast.unparse(parent)}` is a tensor of one element")
                self._use(parent, Form.NUMBER, None, fixed)
            case ast.UnaryOp(op=ast.Not()):
                self._number(e, self._single(e, form))
            case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test) | ast.IfExp(test=test) if test is e:
                self._number(e, self._single(e, form))
            case ast.IfExp(body=body, orelse=orelse):
                other = orelse if e is body else body
                if self._single(e, form) is Form.ONE:
                    raise RefusedError(e, f"`{ast.unparse(parent)}` is a tensor of one element")
                self._use(parent, form, binding, fixed or not self._same_kind(other))
            case ast.BoolOp() if self._is_test(parent):
                self._number(e, self._single(e, form))
            case ast.BoolOp(values=values):
                if self._single(e, form) is Form.ONE:
                    raise RefusedError(e, f"`{ast.unparse(parent)}` hands a tensor of one element on")
                seen = binding or (self.syntax.statement_of(e) if self._is_view(e) else None)
                self._use(parent, form, seen, fixed or not all(self._same_kind(v) for v in values))
            case ast.Assign() | ast.AnnAssign():
                self._bound(e, form, parent, binding, fixed)
            case ast.AugAssign(target=target):
                self._added(e, form, parent, target)
            case ast.Call():
                self._passed(e, form, parent, binding, fixed)
            case ast.keyword() if isinstance(call := self.syntax.parents[parent], ast.Call):
                self._passed(e, form, call, binding, fixed)
            case ast.Return():
                self._returned(e, form, binding)
            case ast.FormattedValue(conversion=-1, format_spec=spec) if self._single(e, form) is Form.NUMBER and (
                spec is None or self._in_error(e)
            ):
                self.reads.append(e)
            case ast.For(iter=it) if it is e:
                self._iterated(e, form, parent)
            case ast.Tuple() | ast.List() if isinstance(self.syntax.parents[parent], ast.Assign):
                self._bound(e, form, parent, binding, fixed)
            case ast.Expr() | ast.Assert() | ast.Raise():
                pass
            case _:
                raise RefusedError(e, f"`{self._line(e)}` needs a tensor, or may")

    def _in_time(self, e: ast.expr, binding: ast.AST | None) -> None:
        """Refuse when the state may have changed since ``binding``, or changes while ``e`` is read."""
        late = self.order.changed_between(binding, e) if binding is not None else None
        if late is not None:
            line = ast.unparse(late).splitlines()[0]
            raise RefusedError(e, f"`{ast.unparse(e)}` is a view of the state and is read after `{line}`")
        beside = self.order.changed_beside(e) if not self._read_at_once(e) else None
        if beside is not None:
            raise RefusedError(e, f"`{ast.unparse(e)}` is read beside `{ast.unparse(beside)}`, which may change it")

    def _read_at_once(self, e: ast.expr) -> bool:
        """Whether the number is taken out of the tensor before anything else of the statement is evaluated."""
        parent = self.syntax.parents[e]
        if self.syntax.builtin(parent) == "int" and parent.args == [e]:  # type: ignore[attr-defined]
            return True
        if isinstance(parent, ast.Subscript) and parent.value is e:
            return isinstance(parent.ctx, ast.Load)  # the element is looked at by itself
        return isinstance(parent, ast.Attribute) and parent.attr in READS | COUNTS | {"shape"}

    def _in_error(self, e: ast.AST) -> bool:
        """Whether ``e`` is only evaluated when an error is raised."""
        statement = self.syntax.statement_of(e)
        if isinstance(statement, ast.Assert):
            return statement.msg is not None and any(n is e for n in ast.walk(statement.msg))
        return isinstance(statement, ast.Raise)

    def _element(self, e: ast.Subscript, form: Form, binding: ast.AST | None) -> None:
        if form is Form.NUMBER:
            raise RefusedError(e, f"`{ast.unparse(e)}` needs a tensor")
        if isinstance(e.ctx, ast.Del):
            raise RefusedError(e, f"`{self._line(e)}` is not understood")
        if isinstance(e.ctx, ast.Store):
            self._place(e, Form.NUMBER)
            return
        self._index(e)
        if form is Form.ONE and not (isinstance(e.slice, ast.Constant) and e.slice.value in (0, -1)):
            raise RefusedError(e, f"`{ast.unparse(e)}` is not understood")
        self._use(e, Form.NUMBER, None)

    def _as_index(self, e: ast.expr, form: Form, bound: bool) -> None:
        """``e`` is the index of something, or (``bound``) a bound of a slice."""
        if self._single(e, form) is Form.ONE and not bound:
            raise RefusedError(e, f"`{self._line(e)}` indexes with a row of one element")
        self._number(e, form)

    def _arithmetic(self, e: ast.expr, form: Form, parent: ast.BinOp, fixed: bool) -> None:
        other = parent.right if parent.left is e else parent.left
        if form in ROWS:
            raise RefusedError(parent, f"`{ast.unparse(parent)}` computes with the whole row")
        value = self.inference.of(other)
        state = self.numbers.form(other)
        if value.is_tensor and state is None:
            if form is Form.ONE or not keeps_dtype(value) or not isinstance(parent.op, (*ARITHMETIC, ast.Div)):
                raise RefusedError(parent, f"`{ast.unparse(parent)}` computes with tensors")
            self.tensor_uses.append(parent)
            return
        if not isinstance(parent.op, ARITHMETIC):
            raise RefusedError(parent, f"`{ast.unparse(parent)}` is no integer")
        if state in ROWS:
            raise RefusedError(parent, f"`{ast.unparse(parent)}` computes with the whole row")
        if (state is not None and isinstance(parent.op, ast.Mult)) or is_large(other):
            raise RefusedError(parent, f"`{ast.unparse(parent)}` may wrap round as a tensor")
        if state is None and not self.numbers.is_number(other):
            if value.python in ("float", "str", "container", "none", "bool"):
                raise RefusedError(parent, f"`{ast.unparse(parent)}` is no integer")
            if (foreign := self.origins.read_of_data(other, frozenset(self.forms))) is not None:
                raise RefusedError(parent, f"the amount `{ast.unparse(foreign)}` is itself tensor data")
            self._doubt(f"`{ast.unparse(other)}` is a Python integer")
        if form is Form.ONE:
            self.changes[e] = Change(Step.FIRST, e, (e,))
            if not self._one_is_enough(parent):
                raise RefusedError(parent, f"`{ast.unparse(parent)}` is a tensor of one element")
        self._use(parent, Form.NUMBER, None, fixed)

    def _one_is_enough(self, e: ast.expr) -> bool:
        """Whether a tensor of one element is used as one without a dimension would be."""
        match parent := self.syntax.parents[e]:
            case ast.Slice() | ast.Attribute(attr="item"):
                return True
            case ast.Call():
                return self.syntax.builtin(parent) in ("int", "float", "range")
            case ast.Compare():
                return self._is_test(parent)
        return False

    def _compared(self, e: ast.expr, form: Form, parent: ast.Compare) -> None:
        sides = [s for s in (parent.left, *parent.comparators) if s is not e]
        identity = any(isinstance(op, (ast.Is, ast.IsNot)) for op in parent.ops)
        if identity and all(isinstance(s, ast.Constant) and s.value is None for s in sides):
            return
        if identity or any(
            isinstance(op, (ast.In, ast.NotIn)) and not isinstance(s, (ast.Tuple, ast.List))
            for op, s in zip(parent.ops, parent.comparators, strict=True)
        ):
            raise RefusedError(e, f"`{ast.unparse(parent)}` asks which tensor it is")
        self._single(e, form)
        if any(self.inference.of(s).is_tensor and self.numbers.form(s) is None for s in sides):
            if form is Form.ONE or len(sides) > 1 or not all(keeps_dtype(self.inference.of(s)) for s in sides):
                raise RefusedError(e, f"`{ast.unparse(parent)}` compares with tensors")
            self.tensor_uses.append(parent)
            return
        if not self._is_test(parent):
            raise RefusedError(e, f"`{ast.unparse(parent)}` is a tensor that is used further")
        self._number(e, form)
