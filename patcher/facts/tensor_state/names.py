"""Where the state gets local names, and what is done with it under them."""

from __future__ import annotations

import ast

from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.classes import pairs
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tensor_state.calls import Calls
from patcher.facts.tensor_state.forms import ARITHMETIC, ROWS, Change, Form, RefusedError, Step
from patcher.facts.tensor_state.record import keeps_dtype


class Names(Calls):
    """One layer of `Uses`: where the state gets local names, and what is done with it under them."""

    def _bound(self, e: ast.expr, form: Form, parent: ast.AST, binding: ast.AST | None, fixed: bool) -> None:
        """``e`` is assigned."""
        assign = self.syntax.statement_of(parent)
        if isinstance(parent, ast.AnnAssign) and isinstance(parent.target, ast.Name):
            if not fixed:
                self.annotation(parent.annotation, form)
            self._follow_name(parent.target, e, form, binding, fixed)
            return
        if not isinstance(assign, ast.Assign):
            raise RefusedError(e, f"`{self._line(e)}` is not understood")
        targets = [t for target in assign.targets for t, value in pairs(target, assign.value) if value is e]
        together = parent is not assign
        if (together and len(assign.targets) > 1) or not targets:
            raise RefusedError(e, f"`{self._line(e)}` is not understood")
        if together and self._is_view(e) and any(map(self._is_state_place, assign.targets[0].elts)):  # type: ignore[attr-defined]
            raise RefusedError(e, f"`{ast.unparse(e)}` is a view, and is read when the others are assigned")
        for target in targets:
            if isinstance(target, ast.Name):
                self._follow_name(target, e, form, binding, fixed)
            elif self._is_state_place(target):  # looked at from that side as well
                if self._single(e, form) is Form.ONE:
                    self.changes[e] = Change(Step.FIRST, e, (e,))
            elif not (
                isinstance(target, ast.Subscript)
                and self.inference.of(target.value).is_tensor
                and self._single(e, form) is Form.NUMBER
            ):
                raise RefusedError(e, f"`{self._line(e)}` hands the tensor on")

    def _follow_name(self, target: ast.Name, e: ast.expr, form: Form, binding: ast.AST | None, fixed: bool) -> None:
        function = self.syntax.function_of(target)
        if function is None or target.id in self._captured(function):
            raise RefusedError(e, f"`{target.id}` is used in a function inside of the method")
        definition = self.inference.flow_of(function).by_node.get(target)
        seen = binding or (self.syntax.statement_of(e) if self._is_view(e) else None)
        if definition is not None:
            self._follow_definition(definition, function, form, seen, fixed)

    def _follow_definition(
        self, d: Definition, function: FunctionNode, form: Form, binding: ast.AST | None, fixed: bool
    ) -> None:
        if (d, fixed) in self._followed:
            return
        self._followed.add((d, fixed))
        for use in self.inference.flow_of(function).uses.get(d, ()):
            others = self.inference.definitions(use) - {d}
            mixed = fixed or not all(self.numbers.binds_number(o) for o in others)
            parent = self.syntax.parents[use]
            if isinstance(parent, ast.AugAssign) and parent.target is use:
                self._changed_through(use, d, parent, function, mixed)
            else:
                self._use(use, form, binding, mixed)

    def _changed_through(
        self, name: ast.Name, d: Definition, statement: ast.AugAssign, function: FunctionNode, mixed: bool
    ) -> None:
        """``at += n``, where ``at`` is a name for one element of the state: it is the element that changes."""
        flow = self.inference.flow_of(function)
        place, left = d.part
        after = flow.by_node.get(statement)
        known = isinstance(place, (ast.Subscript, ast.Attribute)) and self.numbers.form(place) is Form.NUMBER
        if mixed or left or not known or place is None or (after is not None and flow.uses.get(after)):
            raise RefusedError(statement, f"`{name.id}` is changed in place by `{ast.unparse(statement)}`")
        for n in ast.walk(place):
            bound = [x for x in flow.by_node.values() if isinstance(n, ast.Name) and x.name == n.id]
            if isinstance(n, ast.Call) or len(bound) > 1:
                raise RefusedError(statement, f"`{ast.unparse(place)}` may be another element by then")
        if (late := self.order.changed_between(d.node, statement)) is not None:
            raise RefusedError(statement, f"`{ast.unparse(late).splitlines()[0]}` may put another tensor there")
        self._integer(statement.value)
        self.changes[name] = Change(Step.READ, name, (place,))

    def _added(self, e: ast.expr, form: Form, parent: ast.AugAssign, target: ast.expr) -> None:
        """``target += e``."""
        self._single(e, form)
        if self._is_state_place(target) and form is Form.NUMBER:
            return  # looked at from that side
        value = self.inference.of(target)
        if value.is_tensor and form is Form.NUMBER and keeps_dtype(value):
            return
        if isinstance(target, ast.Name) and isinstance(parent.op, ARITHMETIC) and form is Form.NUMBER:
            before = self.inference.definitions(target)
            function = self.syntax.function_of(target)
            if before and function is not None and all(self.numbers.binds_number(d) for d in before):
                made = self.inference.flow_of(function).by_node.get(parent)
                if made is not None:
                    for use in self.inference.flow_of(function).uses.get(made, ()):
                        if self.syntax.parents[use] is not parent:
                            self._use(use, Form.NUMBER, None)
                    return
        raise RefusedError(e, f"`{ast.unparse(parent)}` needs a tensor, or may")

    def _alone(self, loop: ast.For) -> None:
        """Refuse when the name that ``loop`` binds is read behind it."""
        function = self.syntax.function_of(loop)
        assert function is not None
        flow, inside = self.inference.flow_of(function), set(ast.walk(loop))
        d = flow.by_node[loop.target]
        if d.name in flow.captured or not inside.issuperset(flow.uses.get(d, ())):
            raise RefusedError(loop, f"`{d.name}` is used when the loop is over")

    def _iterated(self, e: ast.expr, form: Form, loop: ast.For) -> None:
        match loop:
            case ast.For(
                target=ast.Name(id=name),
                body=[ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=each), attr=attr), args=args))],
                orelse=[],
            ) if form in ROWS and name == each and attr in ("zero_", "fill_") and self.syntax.alone(loop):
                value: ast.expr | str = args[0] if args else "0"
                if not isinstance(value, str):
                    self._integer(value)
                    self._once(value)
                    if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value)):
                        raise RefusedError(loop, f"`{ast.unparse(value)}` is another number for each element")
                self._alone(loop)
                self.changes[loop] = Change(Step.SET_ALL, loop, (e, value))
                return
            case ast.For(target=ast.Name() as target) if form in ROWS:
                self._follow_name(target, e, Form.NUMBER, loop, False)
                return
        raise RefusedError(e, f"`for {ast.unparse(loop.target)} in {ast.unparse(e)}` is not understood")
