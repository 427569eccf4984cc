"""Where the state meets calls: its own methods as a tensor, functions that get it, methods that return it."""

from __future__ import annotations

import ast

from patcher.facts.syntax.classes import parameter_at
from patcher.facts.syntax.tree import dotted, last_name, own_nodes
from patcher.facts.tensor_state.forms import COUNTS, READS, ROWS, TAKE_NUMBERS_METHODS, Change, Form, RefusedError, Step
from patcher.facts.tensor_state.writes import Writes

_COPIES = frozenset("clone detach cpu contiguous".split())
_REDUCED = {"max": Step.LARGEST, "min": Step.SMALLEST, "sum": Step.TOTAL, "amax": Step.LARGEST, "amin": Step.SMALLEST}
#: Functions of torch that take 0-d integer tensors for numbers, and give the same for numbers.
_TAKE_NUMBERS = frozenset(
    "torch.arange torch.narrow torch._check torch._check_is_size torch._check_value torch._check_index "
    "torch.narrow_copy torch.zeros torch.ones torch.empty".split()
)
_WRITES = {"zero_": Step.SET, "fill_": Step.SET, "add_": Step.ADD, "sub_": Step.SUBTRACT}


class Calls(Writes):
    """One layer of `Uses`: methods that are called on the state, functions that get it, methods that return it."""

    def _attribute(self, e: ast.expr, form: Form, parent: ast.Attribute, binding: ast.AST | None, fixed: bool) -> None:
        outer = self.syntax.parents[parent]
        self._asked |= self.origins.of(e)
        if isinstance(outer, ast.Call) and outer.func is parent:
            self._method(e, form, outer, parent.attr, binding, fixed)
        elif parent.attr == "shape" and form is Form.ROW and isinstance(outer, ast.Subscript):
            if not (isinstance(outer.slice, ast.Constant) and outer.slice.value in (0,)):
                raise RefusedError(e, f"`{ast.unparse(outer)}` is not understood")
            self.changes[outer] = Change(Step.LENGTH, outer, (e,))
        else:
            raise RefusedError(e, f"`{ast.unparse(parent)}` needs a tensor")

    def _method(self, e: ast.expr, form: Form, call: ast.Call, name: str, binding: ast.AST | None, fixed: bool) -> None:
        outer = self.syntax.parents[call]
        if fixed:
            raise RefusedError(e, f"`{ast.unparse(call)}` is called on what is no tensor at times")
        if name in READS and not call.args and form is not Form.LIST:
            if form is Form.ROW:
                if name == "item":
                    raise RefusedError(e, f"`{ast.unparse(call)}` reads a row as one number")
                self.reads.append(call)
                self.changes[call] = Change(Step.ITEMS, call, (e,))
            elif name == "tolist" and form is Form.ONE:
                raise RefusedError(e, f"`{ast.unparse(call)}` reads a list of one element")
            else:
                self._read(self._through_int(call), e, form)
        elif name in COUNTS | {"size"} and form in (Form.ROW, Form.ONE):
            if name == "size" and not (len(call.args) == 1 and isinstance(call.args[0], ast.Constant)):
                raise RefusedError(e, f"`{ast.unparse(call)}` needs a tensor")
            self.changes[call] = Change(Step.LENGTH, call, (e,))
        elif name in _COPIES and not self._moves(call) and form is Form.NUMBER and not call.args and not call.keywords:
            self.changes[call] = Change(Step.READ, call, (e,))
            self._use(call, form, None if name == "clone" else binding, fixed)
        elif self._moves(call):
            pass  # looked at from the side of the assignment
        elif name in _WRITES and isinstance(outer, ast.Expr):
            if not isinstance(e, (ast.Attribute, ast.Subscript)) and form is Form.NUMBER:
                raise RefusedError(e, f"`{ast.unparse(e)}` is another name of the state, and is changed in place")
            if call.keywords or len(call.args) != (0 if name == "zero_" else 1) or form is Form.LIST:
                raise RefusedError(e, f"`{ast.unparse(call)}` is not understood")
            self._written(e, form, _WRITES[name], call.args[0] if call.args else "0", outer, name == "fill_")
        elif name in _REDUCED and form is Form.ROW and not call.args and not call.keywords:
            self.changes[call] = Change(_REDUCED[name], call, (e,))
            self._use(call, Form.NUMBER, None, fixed)
        elif name == "append" and form is Form.LIST and isinstance(outer, ast.Expr) and len(call.args) == 1:
            made = self.creations.made(call.args[0])
            if made is None or made.form is not Form.NUMBER:
                raise RefusedError(e, f"`{ast.unparse(call)}` is not understood")
            self._make(made.changes)
        else:
            raise RefusedError(e, f"`{ast.unparse(call)}` needs a tensor")

    def _through_int(self, e: ast.expr) -> ast.expr:
        """``e``, or the ``int()`` around it, which has nothing left to do."""
        parent = self.syntax.parents[e]
        if isinstance(parent, ast.Call) and parent.args == [e] and not parent.keywords:
            return parent if self.syntax.builtin(parent) == "int" else e
        return e

    def _passed(self, e: ast.expr, form: Form, call: ast.Call, binding: ast.AST | None, fixed: bool) -> None:
        what = self.syntax.qualified(call.func) or ""
        if isinstance(call.func, ast.Name) and self.syntax.is_builtin(call.func):
            self._builtin(e, form, call, call.func.id, binding, fixed)
            return
        own = self.origins.attribute(call.func)
        if own is not None and own in self.origins.own:
            self._own_method(e, form, call, own)
            return
        numbers = what in _TAKE_NUMBERS or (not what and own is None and last_name(call.func) in TAKE_NUMBERS_METHODS)
        if numbers and e in call.args and self._single(e, form) is Form.NUMBER:
            self._number(e, form)
            return
        outer = self.syntax.parents[call]
        if isinstance(outer, (ast.Raise, ast.Assert)):
            return
        stored = isinstance(outer, ast.Assign) and self.origins.attribute(outer.targets[0]) in self.forms
        if stored and self._alike(call, form) is not None:
            return  # looked at from the side of the assignment
        name = ast.unparse(call.func)
        raise RefusedError(e, f"`{ast.unparse(e)}` is passed to `{name}`, which may need a tensor")

    def _builtin(
        self, e: ast.expr, form: Form, call: ast.Call, name: str, binding: ast.AST | None, fixed: bool
    ) -> None:
        alone = call.args == [e] and not call.keywords
        if name == "int" and alone and form in (Form.NUMBER, Form.ONE):
            if fixed:
                self._number(e, form)
            else:
                self._read(call, e, form)
        elif (name in ("float", "bool") and alone and form in (Form.NUMBER, Form.ONE)) or (
            name == "range" and form in (Form.NUMBER, Form.ONE)
        ):
            self._number(e, form)
        elif name == "len" and alone and form in (*ROWS, Form.ONE):
            pass
        elif name in ("max", "min", "sum") and alone and form is Form.ROW:
            self._use(call, Form.NUMBER, binding, fixed)
        elif name in ("max", "min") and len(call.args) > 1 and form is Form.NUMBER and not call.keywords:
            mixed = fixed
            for other in call.args:
                if other is not e and not self._same_kind(other):
                    if self.inference.of(other).is_tensor:
                        raise RefusedError(call, f"`{ast.unparse(call)}` compares with tensors")
                    mixed = True
            self._use(call, Form.NUMBER, binding, mixed)
        elif name == "abs" and alone and form is Form.NUMBER:
            self._use(call, Form.NUMBER, None, fixed)
        elif name.endswith(("Error", "Exception", "Warning")):
            pass
        else:
            raise RefusedError(e, f"`{ast.unparse(call)}` needs a tensor, or may")

    def _own_method(self, e: ast.expr, form: Form, call: ast.Call, name: str) -> None:
        """``self.method(e)``: the parameter that gets it, used as a tensor and as a number."""
        functions = self.origins.own[name]
        keyword = self.syntax.parents[e]
        for function in functions:
            if any(dotted(d) in ("staticmethod", "classmethod") for d in function.decorator_list):
                raise RefusedError(e, f"`{ast.unparse(e)}` is passed to `{name}`")
            at = keyword.arg if isinstance(keyword, ast.keyword) else call.args.index(e)
            found = parameter_at(function, at, True)
            if found is None or any(isinstance(a, ast.Starred) for a in call.args) or self._single(e, form) is Form.ONE:
                raise RefusedError(e, f"`{ast.unparse(e)}` is passed to `{name}`")
            if found.arg in self._captured(function):
                raise RefusedError(e, f"`{found.arg}` is used in a function inside of `{name}`")
            definition = self.inference.flow_of(function).by_node[found]
            start: ast.AST | None = function.body[0] if self._is_view(e) and self.order.changes(name) else None
            if start is not None:
                raise RefusedError(e, f"`{ast.unparse(e)}` is passed to `{name}`, which changes the state")
            self._follow_definition(definition, function, form, None, True)

    def _returned(self, e: ast.expr, form: Form, binding: ast.AST | None) -> None:
        function = self.syntax.function_of(e)
        assert function is not None
        if self._single(e, form) is Form.ONE:
            raise RefusedError(e, f"`{function.name}` returns a tensor of one element")
        calls = self._own_reads(function.name)
        self._doubt(f"who calls `{function.name}` can do with an int in place of a tensor")
        for call in calls:
            seen = self.syntax.statement_of(call) if self._is_view(e) or binding is not None else None
            self._use(call, form, seen, True)

    def _own_reads(self, name: str) -> list[ast.expr]:
        """Where the class calls its own method of that name, or reads that property of its own."""
        found: list[ast.expr] = []
        properties = any(
            dotted(d) in ("property", "functools.cached_property")
            for f in self.origins.own[name]
            for d in f.decorator_list
        )
        for function in self.origins.methods:
            for n in own_nodes(function):
                if isinstance(n, ast.Attribute) and self.origins.attribute(n) == name:
                    parent = self.syntax.parents[n]
                    if properties:
                        if isinstance(n.ctx, ast.Load):
                            found.append(n)
                    elif isinstance(parent, ast.Call) and parent.func is n:
                        found.append(parent)
                    else:
                        raise RefusedError(n, f"`{ast.unparse(n)}` is handed on")
        return found
