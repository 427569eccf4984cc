"""Where the state is written: made, assigned, advanced, reset, moved; and what annotates it."""

from __future__ import annotations

import ast

from patcher.facts.syntax.classes import pairs
from patcher.facts.syntax.tree import dotted
from patcher.facts.tensor_state.forms import ROWS, Change, Form, RefusedError, Step
from patcher.facts.tensor_state.record import Record, is_large

_WHOLE = {Step.SET: Step.SET_ALL, Step.ADD: Step.ADD_ALL, Step.SUBTRACT: Step.SUBTRACT_ALL}


class Writes(Record):
    """One layer of `Uses`: places where the state is made, assigned, advanced, reset or moved."""

    def _place(self, e: ast.Attribute | ast.Subscript | ast.Name, form: Form, binding: ast.AST | None = None) -> None:
        """The state itself, a name for it or an element of it, where it is read or written."""
        if isinstance(e.ctx, ast.Load):
            self._use(e, form, binding)
            return
        parent = self.syntax.parents[e]
        match parent:
            case ast.Assign(targets=targets, value=value) if len(targets) > 1:
                raise RefusedError(parent, "several names get one tensor")
            case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                self._assigned(e, form, value, parent)
            case ast.AugAssign(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv() | ast.Mod() as op, value=value):
                self._advanced(e, form, parent, op, value)
            case ast.AnnAssign(value=None):
                pass
            case ast.Tuple() | ast.List():
                self._assigned(e, form, self._stored_beside(e, self.syntax.parents[parent]), parent)
            case _:
                raise RefusedError(e, f"`{ast.unparse(self.syntax.statement_of(e)).splitlines()[0]}` is not understood")

    def _stored_beside(self, e: ast.expr, statement: ast.AST) -> ast.expr:
        """What ``e``, one of several targets, is assigned."""
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            for target, value in pairs(statement.targets[0], statement.value):
                if target is e and value is not None:
                    if self._is_view(value):
                        raise RefusedError(e, f"`{ast.unparse(value)}` is a view, and is read when others are assigned")
                    return value
        raise RefusedError(e, f"`{ast.unparse(e)}` is assigned together with others")

    def _assigned(self, e: ast.expr, form: Form, value: ast.expr, parent: ast.AST) -> None:
        """``value`` is stored in ``e``: an attribute as a whole, an element, or all elements (``[:]``)."""
        if isinstance(e, ast.Attribute):
            self._stored(e, form, value, parent)
            return
        assert isinstance(e, ast.Subscript)
        base = self.numbers.form(e.value)
        if self._is_whole(e.slice):
            self._written(e.value, base, Step.SET, value, self.syntax.statement_of(e))
            return
        self._index(e)
        if base is Form.LIST:
            made = self.creations.made(value)
            if made is not None:
                if made.form is not Form.NUMBER:
                    raise RefusedError(value, f"`{ast.unparse(value)}` is no single integer")
                self._make(made.changes)
                return
            if self._is_view(value):
                raise RefusedError(value, f"`{ast.unparse(value)}` is put into the list: two elements share one tensor")
            if self.numbers.is_number(value) and self.numbers.form(value) is None:
                raise RefusedError(value, f"`{ast.unparse(value)}` is a number, put where tensors are")
            self._not_named_on(value, e)
            self._known(value, "a Python integer")
        self._fits(value)
        self._integer(value)

    def _fits(self, value: ast.expr) -> None:
        """``value`` is put into a tensor of the state, which may have 32 bits."""
        if is_large(value, 2**31 - 1):
            raise RefusedError(value, f"`{ast.unparse(value)}` may not fit into a tensor")

    def _not_named_on(self, value: ast.expr, place: ast.expr) -> None:
        """A tensor that becomes state is seen through every name that it has, and changes under it."""
        for name in [n for n in ast.walk(value) if isinstance(n, ast.Name)]:
            function = self.syntax.function_of(name)
            if function is None or (self.numbers.is_sure(name) and self.numbers.form(name) is None):
                continue
            for d in self.inference.definitions(name):
                for use in self.inference.flow_of(function).uses.get(d, ()):
                    if use is name or isinstance(value, (ast.BinOp, ast.Call)):
                        continue
                    again = self._kept_in_state(use)
                    late = self.order.changed_between(place, use) if _after(use, place) else None
                    if again or late is not None:
                        raise RefusedError(value, f"`{name.id}` is the state from here on, and is used further")

    def _kept_in_state(self, e: ast.expr) -> bool:
        parent = self.syntax.parents[e]
        return isinstance(parent, ast.Assign) and any(self._is_state_place(t) for t in parent.targets)

    def _stored(self, e: ast.Attribute, form: Form, value: ast.expr, parent: ast.AST) -> None:
        if (fill := self._alike(value, form)) is not None:
            step = Step.VALUE if form is Form.NUMBER else Step.ALIKE
            self.changes[value] = Change(step, value, (fill,) if form is Form.NUMBER else (value.args[0], fill))  # type: ignore[attr-defined]
            return
        made = self.creations.made(self._source(value))
        if made is not None:
            if (made.form or Form.LIST) is not form:
                raise RefusedError(value, f"`self.{e.attr}` holds other things as well: `{ast.unparse(value)}`")
            self._make(made.changes)
            if isinstance(parent, ast.AnnAssign):
                self.annotation(parent.annotation, form)
            return
        if isinstance(value, ast.Constant) and value.value is None and form is not Form.ONE:
            if isinstance(parent, ast.AnnAssign):
                self.annotation(parent.annotation, form)
            return
        if self._moved(value, e.attr):
            statement = self.syntax.statement_of(e)
            if len(self.syntax.block_of(statement)) < 2 or not self.syntax.alone(statement):
                raise RefusedError(value, f"`{ast.unparse(statement)}` would leave an empty block")
            self.changes[statement] = Change(Step.DROP, statement)
            return
        if form is not Form.NUMBER:
            raise RefusedError(value, f"`self.{e.attr}` is assigned `{ast.unparse(value)}`")
        if self._is_view(value):
            raise RefusedError(value, f"`self.{e.attr}` and `{ast.unparse(value)}` are one tensor")
        if self.numbers.is_number(value) and self.numbers.form(value) is None:
            self._plain.append((e.attr, value))
        self._not_named_on(value, e)
        self._known(value, "a Python integer")
        self._integer(value)

    def _alike(self, value: ast.expr, form: Form) -> str | None:
        """What fills a new tensor that is made like another one of the state with the same form."""
        if not isinstance(value, ast.Call) or len(value.args) != 1 or form is Form.LIST:
            return None
        fill = {"torch.zeros_like": "0", "torch.ones_like": "1"}.get(self.syntax.qualified(value.func) or "")
        keywords = {k.arg for k in value.keywords} <= {"device"}
        return fill if keywords and self.numbers.form(value.args[0]) is form else None

    def _source(self, value: ast.expr) -> ast.expr:
        """``value``, or what the name ``value`` stands for when that is its only use."""
        if isinstance(value, ast.Name):
            found = list(self.inference.definitions(value))
            function = self.syntax.function_of(value)
            if len(found) == 1 and function is not None and found[0].how == "assign" and not found[0].path:
                uses = self.inference.flow_of(function).uses.get(found[0], [])
                if len(uses) == 1 and found[0].value is not None and value.id not in self._captured(function):
                    return found[0].value
        return value

    def _moved(self, value: ast.expr, name: str) -> bool:
        """Whether ``value`` is the state itself, on another device."""
        match value:
            case ast.Call(func=ast.Attribute(value=base, attr="to" | "cuda" | "cpu" | "contiguous")):
                return self.origins.attribute(base) == name and self._to_device(value)
        return False

    def _moves(self, call: ast.Call) -> bool:
        """Whether ``call`` is the right side of ``self.n = self.n.to(device)``."""
        parent = self.syntax.parents[call]
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
            return False
        name = self.origins.attribute(parent.targets[0])
        return name in self.forms and self._moved(call, str(name))

    def _to_device(self, call: ast.Call) -> bool:
        given = [*call.args, *(k.value for k in call.keywords)]
        return all(self.creations.is_device(a) or isinstance(a, ast.Constant) for a in given)

    def _advanced(
        self,
        e: ast.Attribute | ast.Subscript | ast.Name,
        form: Form,
        statement: ast.AugAssign,
        op: ast.operator,
        value: ast.expr,
    ) -> None:
        """``e += value``."""
        if (changing := self.order.changes_in(value)) is not None:
            raise RefusedError(statement, f"`{ast.unparse(changing)}` may change what it is added to")
        if is_large(value) or (isinstance(op, ast.Mult) and self.numbers.form(value) is not None):
            raise RefusedError(statement, f"`{ast.unparse(statement)}` may wrap round as a tensor")
        if isinstance(e, ast.Name):
            raise RefusedError(statement, f"`{e.id}` is another name of the state, and is changed in place")
        if isinstance(e, ast.Subscript):
            base = self.numbers.form(e.value)
            if self._is_whole(e.slice):
                e, form = e.value, base or form  # type: ignore[assignment]
            else:
                self._index(e)
        if form in ROWS:
            step = {ast.Add: Step.ADD, ast.Sub: Step.SUBTRACT}.get(type(op))
            if step is None or form is Form.LIST:
                raise RefusedError(statement, f"`{ast.unparse(statement)}` computes with the whole row")
            self._written(e, form, step, value, statement)
            return
        self._integer(value)
        if form is Form.ONE and not isinstance(e, ast.Subscript):
            self.changes[e] = Change(Step.FIRST, e, (e,))

    def _written(
        self, e: ast.expr, form: Form | None, step: Step, value: ast.expr | str, s: ast.stmt, fills: bool = False
    ) -> None:
        """All of ``e``, a row or a number, is set or advanced by the statement ``s``.

        ``fills``: by ``fill_``, which takes a single number only.
        """
        if not isinstance(value, str):
            self._integer(value)
            if form in (*ROWS, Form.ONE):
                self._once(value)
                if not fills:
                    self._known(value, "one integer")
            if step is not Step.SET and is_large(value):
                raise RefusedError(s, f"`{ast.unparse(s)}` may wrap round as a tensor")
            self._fits(value)
        if form is Form.LIST and step is not Step.SET:
            raise RefusedError(s, f"`{ast.unparse(s)}` computes with a list of tensors")
        if not self.syntax.alone(s):
            raise RefusedError(s, f"`{ast.unparse(s)}` shares its line with other code")
        row = form in (*ROWS, Form.ONE)
        self.changes[s] = Change(_WHOLE[step] if row else step, s, (e, value))

    def _once(self, value: ast.expr) -> None:
        """``value`` is written once, and evaluated for each element."""
        calls = [n for n in ast.walk(value) if isinstance(n, (ast.Call, ast.Await, ast.NamedExpr))]
        if not all(isinstance(n, ast.Call) and self.numbers.is_size(n) for n in calls):
            raise RefusedError(value, f"`{ast.unparse(value)}` would be evaluated more than once")

    def annotation(self, e: ast.expr, form: Form) -> None:
        """An annotation of the state; what says None beside the tensor stays."""
        match e:
            case ast.Subscript(value=base, slice=inner) if (dotted(base) or "").rpartition(".")[2] == "Optional":
                self.annotation(inner, form)
                return
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                self.annotation(right if isinstance(left, ast.Constant) and left.value is None else left, form)
                return
        self.changes[e] = Change(Step.TYPE, e, ("int" if form is Form.NUMBER else "list[int]",))


def _after(a: ast.AST, b: ast.AST) -> bool:
    return (a.lineno, a.col_offset) > (b.lineno, b.col_offset)  # type: ignore[attr-defined]
