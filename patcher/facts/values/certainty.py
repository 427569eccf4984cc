"""How sure it is that an expression is a tensor: made by torch, told by a test, used like one, or only said to be one.

``Value.is_tensor`` holds for all of these. Where anything else would still work in the original (a number that is
compared, a list that is indexed) and not in new code, ask here.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition, State
from patcher.facts.flow.fixpoint import Settled
from patcher.facts.flow.narrowing import Ruling
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.syntax.written import defaults
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.dimensions import unconditional
from patcher.facts.values.types import FOREIGN, Kind

if TYPE_CHECKING:
    from patcher.facts import Facts

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASKING = frozenset("isinstance hasattr callable getattr len type".split())


class Grade(enum.IntEnum):
    """How a tensor is known to be one.

    ``SAID``: by an annotation, or a call. ``USED``: something is used on it that only a tensor has. ``CERTAIN``: torch
    made it, a test says so, or an annotation says so and every call uses it like one.
    """

    UNKNOWN = 0
    SAID = 1
    USED = 2
    CERTAIN = 3


#: What the answer for an expression is made of: a definition, and whether tests say that it is not None; an attribute.
_Bound: TypeAlias = tuple[Definition, bool] | tuple[ast.ClassDef, str]


class Certainty(Analysis):
    """Answers for one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._grades: Settled[_Bound, Grade] = Settled(self._grade, Grade.CERTAIN)
        self._numbers: Settled[Definition, bool] = Settled(self._binds_number, True)
        self._arrays: Settled[Definition, bool] = Settled(self._binds_array, False)

    def of(self, e: ast.expr) -> Grade:
        """How sure it is that ``e``, where it is evaluated and returns, is a tensor."""
        return self._of(e, self._grades) if self.inference.of(e).is_tensor else Grade.UNKNOWN

    def is_used(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor by what is done with it (second presumption), not only by what is said of it."""
        return self.of(e) >= Grade.USED

    def is_number(self, e: ast.expr) -> bool:
        """Whether ``e``, which is held to be a Python number, is one whatever callers give for an annotated ``float``.

        A parameter whose default is a number holds one (sixth presumption).
        """
        return self._is_number(e, self._numbers)

    def _is_number(self, e: ast.expr, bound: Callable[[Definition], bool]) -> bool:
        match e:
            case ast.Name():
                return all(map(bound, self.inference.definitions(e)))
            case ast.NamedExpr(value=value) | ast.UnaryOp(operand=value):
                return self._is_number(value, bound)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self._is_number(left, bound) and self._is_number(right, bound)
        return True

    def may_be_array(self, e: ast.expr) -> bool:
        """Whether something that is seen to reach ``e`` is a tensor, or what another library made: no Python value."""
        return self._may_be_array(e, self._arrays)

    def _may_be_array(self, e: ast.expr, bound: Callable[[Definition], bool]) -> bool:
        value = self.inference.of(e)
        if value.is_tensor or value == FOREIGN:
            return True
        match e:
            case ast.Name():
                return any(map(bound, self.inference.definitions(e)))
            case ast.NamedExpr(value=inner) | ast.UnaryOp(operand=inner):
                return self._may_be_array(inner, bound)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self._may_be_array(left, bound) or self._may_be_array(right, bound)
            case ast.BoolOp(values=parts):
                return any(self._may_be_array(p, bound) for p in parts)
        return False

    def _binds_array(self, d: Definition, bound: Callable[[Definition], bool]) -> bool:
        if d.how == "parameter":
            return any(self._may_be_array(e, bound) for e in self.facts.ask(Callees).given(d))
        value, path = d.part
        inner = value if d.how in ("assign", "augmented") and not path else None
        return inner is not None and self._may_be_array(inner, bound)

    def _binds_number(self, d: Definition, bound: Callable[[Definition], bool]) -> bool:
        match d.how, d.node:
            case "parameter", ast.arg(annotation=ast.expr()) as argument:
                given = self.syntax.parents[argument]
                default = defaults(given).get(argument.arg) if isinstance(given, ast.arguments) else None
                return isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float))
            case "assign", _ if d.value is not None and not d.path:
                return self._is_number(d.value, bound)
        return True

    def _of(self, e: ast.expr, bound: Callable[[_Bound], Grade]) -> Grade:
        if (seen := self.inference.observed(e)) is not None:
            return Grade.CERTAIN if seen.is_tensor else Grade.UNKNOWN
        match e:
            case ast.Name():
                definitions, state = self.inference.definitions(e), self.inference.state(e)
                return min((self._ruled(d, state, bound) for d in definitions), default=Grade.SAID)
            case ast.NamedExpr(value=value) | ast.UnaryOp(operand=value) | ast.Subscript(value=value):
                return self._of(value, bound)
            case ast.Attribute(value=value):
                own = self.inference.instance_attribute(e)
                return bound(own) if own is not None else self._of(value, bound)
            case ast.IfExp(body=body, orelse=orelse):
                return min(self._of(body, bound), self._of(orelse, bound))
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                return max(self._of(left, bound), self._of(right, bound))
            case ast.Call(func=ast.Attribute(value=value, attr=name) as func) if self.syntax.qualified(func) is None:
                if self.inference.of(func).kind is Kind.MODULE:
                    return Grade.CERTAIN
                used = Grade.USED if name in self.inference.tensor_names - api.HOST_READS else Grade.SAID
                return max(used, self._of(value, bound))
            case ast.Call():
                return Grade.CERTAIN if self.inference.of(e).is_tensor else Grade.UNKNOWN
        return Grade.UNKNOWN

    def _ruled(self, d: Definition, state: State | None, bound: Callable[[_Bound], Grade]) -> Grade:
        ruled = state.ruled.get(d, frozenset()) if state is not None else frozenset()
        if d.how == "unbound" or Ruling.TENSOR in ruled:
            return Grade.CERTAIN
        return bound((d, Ruling.NOT_NONE in ruled))

    def _grade(self, what: _Bound, bound: Callable[[_Bound], Grade]) -> Grade:
        of, more = what
        if isinstance(of, Definition):
            return self._bound(of, more is True, bound)
        return self._stored(of, str(more), bound)

    def _stored(self, cls: ast.ClassDef, name: str, bound: Callable[[_Bound], Grade]) -> Grade:
        """``self.x``: what the class makes of it."""
        if not self.inference.attribute(cls, name).is_tensor:
            return Grade.UNKNOWN
        stores = [s for s in self.class_facts(cls).stores.get(name, []) if s.how != "declared" and not s.in_place]
        grades = [
            Grade.CERTAIN if s.how in ("buffer", "parameter") else self._of(s.value, bound) if s.value else Grade.SAID
            for s in stores
        ]
        return min(grades, default=Grade.SAID)

    def _bound(self, d: Definition, is_set: bool, bound: Callable[[_Bound], Grade]) -> Grade:
        match d.how:
            case "parameter":
                return self._given(d, is_set)
            case "augmented":
                assert isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name)
                return max(self._of(d.node.target, bound), self._of(d.node.value, bound))
            case "assign" | "iteration" if d.value is not None:
                if isinstance(d.value, (ast.Tuple, ast.List)) and len(d.path) == 1 and d.how == "assign":
                    return self._of(d.value.elts[d.path[0]], bound) if d.path[0] < len(d.value.elts) else Grade.UNKNOWN
                if self.inference.defined(d).is_tensor:
                    return self._of(d.value, bound)
                return self._by_use(d, self.syntax.function_of(d.node))
        return Grade.UNKNOWN

    def _given(self, d: Definition, is_set: bool) -> Grade:
        """A parameter: by its annotation, by its uses, and by what calls in this file give it."""
        argument, function = d.node, self.syntax.parents.get(self.syntax.parents[d.node])
        if not isinstance(argument, ast.arg) or not isinstance(function, _FUNCTIONS):
            return Grade.UNKNOWN
        passed = map(self.inference.of, self.facts.ask(Callees).given(d))
        if any(v.kind is Kind.PYTHON or v == FOREIGN for v in passed):
            return Grade.SAID
        used, said = self._by_use(d, function), argument.annotation
        plain = said is not None and self.inference.annotated(said).is_tensor
        if said is not None and is_set:
            plain = plain or self.presumed.annotated(said).is_tensor
        sure = [u for u in self.flow_of(function).uses.get(d, []) if self._only_a_tensor(u)]
        always = any(unconditional(u, self.syntax) for u in sure)
        return Grade.CERTAIN if used is Grade.USED and plain and always else used

    def _by_use(self, d: Definition, function: FunctionNode | None) -> Grade:
        uses = self.flow_of(function).uses.get(d, []) if function is not None else []
        used = any(map(self._only_a_tensor, uses)) and not any(map(self._asks, uses))
        return Grade.USED if used else Grade.SAID

    def _asks(self, use: ast.expr) -> bool:
        """Whether the code itself asks what ``use`` is, or makes a tensor of it."""
        parent = self.syntax.parents[use]
        if not isinstance(parent, ast.Call) or use not in parent.args:
            return False
        return dotted(parent.func) in _ASKING - {"len"} or self.syntax.qualified(parent.func) in api.CONVERTING

    def _only_a_tensor(self, use: ast.expr) -> bool:
        parent = self.syntax.parents[use]
        match parent:
            case ast.Attribute(attr=attr):
                return attr in self.inference.tensor_names - api.HOST_READS
            case ast.Subscript(value=value, slice=ast.Tuple()) if value is use:
                return True
        return self.inference.is_tensor_use(use)
