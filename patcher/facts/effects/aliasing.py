"""Who else holds a tensor: views, names and callees that keep it, changes in place that could be seen through them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from patcher.facts.analysis import Analysis
from patcher.facts.effects.calls import Calls
from patcher.facts.effects.unchanged import Aspect, Unchanged
from patcher.facts.flow.definitions import Definition
from patcher.facts.syntax.tree import FunctionNode
from patcher.facts.tables import call_effects as tables

if TYPE_CHECKING:
    from patcher.facts import Facts

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CONTAINERS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
#: What uses an object, and gives no other holder to it.
_USING = (
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.IfExp, ast.Return, ast.Expr, ast.If, ast.While),
    *(ast.Assert, ast.AugAssign, ast.FormattedValue),
)
#: Views of a tensor no two places of which share memory may still have places that do.
_OVERLAPPING = frozenset("expand expand_as broadcast_to broadcast_tensors as_strided unfold meshgrid".split())
#: What a tensor is asked for that tells it from a copy, or what is hung on it.
_TELLING = frozenset(
    "data_ptr is_leaf grad grad_fn _version storage untyped_storage is_set_to register_hook retain_grad backward "
    "stride is_contiguous storage_offset is_shared register_post_accumulate_grad_hook".split()
)


class Aliasing(Analysis):
    """Aliases of expressions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._calls = facts.ask(Calls)
        self._unchanged = facts.ask(Unchanged)
        self._open: set[Definition] = set()

    def aliases(self, e: ast.expr) -> bool:
        """Whether ``e`` may give an object (or a view of one) that exists already."""
        match e:
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.aliases(operand)
            case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
                return False
            case ast.IfExp(body=body, orelse=orelse):
                return self.aliases(body) or self.aliases(orelse)
            case ast.Call():
                called = self._calls.of(e)
                return bool(called.gives or called.world)
        return True

    def fresh(self, e: ast.expr, branch: ast.AST | None = None, target: str | None = None) -> bool:
        """Whether nobody else can hold the object that ``e`` gives (a local that was made here and never shared).

        After ``branch``, which merges it into the name ``target``, that name gives the merged one.
        """
        if not self.aliases(e):
            return True
        if not isinstance(e, ast.Name):
            return False
        function = self.syntax.function_of(e)
        definitions = self._origins(e)
        if function is None or not definitions or e.id in self.flow_of(function).captured:
            return False
        looped = any(isinstance(p, _LOOPS) for p in self.syntax.ancestors(e))
        for d in definitions:
            if d.how == "augmented":
                pass
            elif d.how != "assign" or d.value is None or d.path or self.aliases(d.value) or not self._only_name(d):
                return False
            for use in self.flow_of(function).uses.get(d, ()):
                if use is e:
                    continue
                within = branch is not None and branch in self.syntax.ancestors(use)
                later = looped or (use.lineno, use.col_offset) > (e.lineno, e.col_offset)
                if later and not within and use.id != target:
                    return False
                merged = later and not within and not looped
                if not merged and self.shares(use):
                    return False
        return True

    def _origins(self, name: ast.Name) -> set[Definition]:
        """The definitions of ``name``, and those that an augmented one may have changed in place."""
        found: set[Definition] = set()
        stack = list(self.inference.definitions(name))
        while stack:
            d = stack.pop()
            if d not in found:
                found.add(d)
                if isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name):
                    stack += self.inference.definitions(d.node.target)
        return found

    def _only_name(self, d: Definition) -> bool:
        """Whether the object goes nowhere but into the name when ``d`` binds it: no ``a = b = value``."""
        parent = self.syntax.parents.get(d.node)
        return isinstance(parent, ast.AnnAssign) or (isinstance(parent, ast.Assign) and len(parent.targets) == 1)

    def shares(self, load: ast.expr) -> bool:
        """Whether this use of a name gives the object, or a view of it, another holder (a return does not count)."""
        outer: ast.expr = self.through_views(load)
        parent = self.syntax.parents[outer]
        if isinstance(parent, ast.Attribute):
            return _writes(parent.attr)  # a method that changes in place gives the tensor itself
        boxed = isinstance(parent, _CONTAINERS)
        while isinstance(parent, (*_CONTAINERS, ast.keyword)):
            parent = self.syntax.parents[parent]
        if isinstance(parent, ast.Call):
            return not self.lets_go(parent)
        if boxed:
            return not isinstance(parent, ast.Return)
        assigned = isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is not outer
        return not (assigned or isinstance(parent, _USING))

    def lets_go(self, call: ast.Call) -> bool:
        """Whether ``call`` neither keeps its arguments nor writes to them, and gives none of them (or a view) back."""
        called = self._calls.of(call)
        return not (called.gives or called.writes or called.keeps or called.runs)

    def may_overlap(self, e: ast.expr) -> bool:
        """Whether several places of the tensor ``e`` may share memory, as far as can be seen."""
        match e:
            case ast.Name():
                definitions = self._origins(e)
                return not definitions or any(self._defined_overlapping(d) for d in definitions)
            case ast.Subscript(value=base):
                return self.may_overlap(base)
            case ast.Attribute() if (own := self.inference.instance_attribute(e)) is not None:
                stores = self.inference.class_facts(own[0]).stores.get(own[1], [])
                return not stores or any(s.value is None or self.may_overlap(s.value) for s in stores)
            case ast.Call(func=ast.Attribute(value=receiver, attr=name)) if self.inference.of(receiver).is_tensor:
                views = name in tables.VIEWS or _writes(name)
                return self.aliases(e) and (name in _OVERLAPPING or (views and self.may_overlap(receiver)))
        return self.aliases(e)

    def _defined_overlapping(self, d: Definition) -> bool:
        if d.how == "augmented":
            return False
        if d.how != "assign" or d.value is None:
            return True
        if d in self._open:  # a view of its own last turn adds nothing
            return False
        self._open.add(d)
        try:
            return self.may_overlap(d.value)
        finally:
            self._open.discard(d)

    def through_views(self, load: ast.expr) -> ast.expr:
        """The outermost expression around ``load`` that may still be the same object or a view of it."""
        node: ast.expr = load
        while True:
            parent = self.syntax.parents[node]
            if isinstance(parent, ast.Subscript) and parent.value is node:
                node = parent
            elif isinstance(parent, ast.Attribute) and parent.attr in tables.VIEWS:
                call = self.syntax.parents[parent]
                node = call if isinstance(call, ast.Call) and call.func is parent else parent
            elif (isinstance(parent, ast.IfExp) and parent.test is not node) or (
                isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.UAdd)
            ):
                node = parent
            else:
                return node

    def escapes(self, definition: Definition, function: FunctionNode) -> str | None:
        """How the object that ``definition`` binds leaves the function or is changed in place, or None."""
        name = definition.name
        if name in self.flow_of(function).captured:
            return f"`{name}` is read by a nested function"
        for use in self.flow_of(function).uses.get(definition, ()):
            if self.is_changed_by(use):
                return f"`{name}` is changed in place"
            outer = self.through_views(use)
            parent = self.syntax.parents[outer]
            if isinstance(parent, ast.Attribute) and parent.attr in _TELLING:
                return f"`{name}` may be an existing tensor, which `{parent.attr}` can tell from a copy"
            if isinstance(parent, ast.Compare) and _by_identity(parent):
                return f"`{name}` may be an existing tensor, and is compared by identity"
            while isinstance(parent, (ast.Tuple, ast.List, ast.Dict)):
                parent = self.syntax.parents[parent]
            if isinstance(parent, ast.Return) or self.shares(use):
                return f"`{name}` may be an existing tensor, and is handed on"
        return None

    def is_changed_by(self, use: ast.Name, surely: bool = False) -> bool:
        """Whether what a name holds, or a view of it, is changed in place by this use of the name.

        ``surely``: not by a call of which that is not known.
        """
        outer = self.through_views(use)
        parent = self.syntax.parents[outer]
        stored = isinstance(outer, (ast.Subscript, ast.Attribute)) and not isinstance(outer.ctx, ast.Load)
        if stored or isinstance(use.ctx, ast.Store) or (isinstance(parent, ast.AugAssign) and parent.target is outer):
            return True
        if isinstance(parent, ast.Call) and outer in (called := self._calls.of(parent)).writes:
            return not (surely and called.world)
        return isinstance(parent, ast.Attribute) and (_writes(parent.attr) or not isinstance(parent.ctx, ast.Load))

    def changed_while_used(
        self, values: Iterable[ast.expr], branch: ast.AST, definition: Definition | None
    ) -> str | None:
        """How one of ``values``, existing tensors that ``branch`` chooses from, may change while the choice is in use.

        ``definition`` is the name that the choice goes into; None when it is used up in the statement that holds it.
        """
        function = self.syntax.function_of(branch)
        assert function is not None
        since = branch.test if isinstance(branch, ast.If) else branch
        uses: list[ast.AST] = [] if isinstance(branch, ast.If) else [self.syntax.statement_of(branch)]
        uses += self.flow_of(function).uses.get(definition, ()) if definition is not None else ()
        for value in filter(self.aliases, values):
            for use in uses:
                if reason := self._unchanged.why_changed(value, since, use, Aspect.MEMORY):
                    return reason
        return None

    def used_up(self, e: ast.expr) -> bool:
        """Whether the value of ``e`` goes straight into an operator or a torch function."""
        outer = self.through_views(e)
        parent = self.syntax.parents[outer]
        if isinstance(parent, ast.Call):
            return outer is not parent.func and self.syntax.qualified(parent.func) is not None and self.lets_go(parent)
        if isinstance(parent, ast.Compare):
            return not _by_identity(parent)
        return isinstance(parent, (ast.BinOp, ast.UnaryOp))


def _writes(name: str) -> bool:
    """Whether a tensor method of that name changes the tensor in place."""
    return name in tables.WRITING_SPECIAL if name.endswith("__") else name.endswith("_")


def _by_identity(compare: ast.Compare) -> bool:
    return any(isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in compare.ops)
