"""How sure it is that an expression is a tensor: made by torch, told by a test, used like one, or only said to be one.

``Value.is_tensor`` holds for all of these. Where anything else would still work in the original (a number that is
compared, a list that is indexed) and not in new code, ask here.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Hashable

from patcher.facts.analysis import Analysis
from patcher.facts.flow.definitions import Definition, State
from patcher.facts.flow.narrowing import Ruling
from patcher.facts.syntax.tree import FunctionNode, dotted
from patcher.facts.syntax.written import defaults
from patcher.facts.tables import torch_api as api
from patcher.facts.values.callees import Callees
from patcher.facts.values.dimensions import unconditional
from patcher.facts.values.types import FOREIGN, Kind

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


class Certainty(Analysis):
    """Answers for one module."""

    def of(self, e: ast.expr) -> Grade:
        """How sure it is that ``e``, where it is evaluated and returns, is a tensor."""
        return self._of(e, frozenset()) if self.inference.of(e).is_tensor else Grade.UNKNOWN

    def is_used(self, e: ast.expr) -> bool:
        """Whether ``e`` is a tensor by what is done with it (second presumption), not only by what is said of it."""
        return self.of(e) >= Grade.USED

    def is_number(self, e: ast.expr) -> bool:
        """Whether ``e``, which is held to be a Python number, is one whatever callers give for an annotated ``float``.

        A parameter whose default is a number holds one (sixth presumption).
        """
        return self._is_number(e, frozenset())

    def _is_number(self, e: ast.expr, seen: frozenset[Definition]) -> bool:
        match e:
            case ast.Name():
                return all(d in seen or self._bound_to_number(d, seen | {d}) for d in self.inference.definitions(e))
            case ast.NamedExpr(value=value) | ast.UnaryOp(operand=value):
                return self._is_number(value, seen)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self._is_number(left, seen) and self._is_number(right, seen)
        return True

    def may_be_array(self, e: ast.expr, seen: frozenset[Definition] = frozenset()) -> bool:
        """Whether something that is seen to reach ``e`` is a tensor, or what another library made: no Python value."""
        value = self.inference.of(e)
        if value.is_tensor or value == FOREIGN:
            return True
        match e:
            case ast.Name():
                found = self.inference.definitions(e) - seen
                return any(self._binds_array(d, seen | found) for d in found)
            case ast.NamedExpr(value=inner) | ast.UnaryOp(operand=inner):
                return self.may_be_array(inner, seen)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                return self.may_be_array(left, seen) or self.may_be_array(right, seen)
            case ast.BoolOp(values=parts):
                return any(self.may_be_array(p, seen) for p in parts)
        return False

    def _binds_array(self, d: Definition, seen: frozenset[Definition]) -> bool:
        if d.how == "parameter":
            return any(self.may_be_array(e, seen) for e in self.facts.ask(Callees).given(d))
        value, path = d.part
        inner = value if d.how in ("assign", "augmented") and not path else None
        return inner is not None and self.may_be_array(inner, seen)

    def _bound_to_number(self, d: Definition, seen: frozenset[Definition]) -> bool:
        match d.how, d.node:
            case "parameter", ast.arg(annotation=ast.expr()) as argument:
                given = self.syntax.parents[argument]
                default = defaults(given).get(argument.arg) if isinstance(given, ast.arguments) else None
                return isinstance(default, ast.Constant) and isinstance(default.value, (bool, int, float))
            case "assign", _ if d.value is not None and not d.path:
                return self._is_number(d.value, seen)
        return True

    def _of(self, e: ast.expr, seen: frozenset[Hashable]) -> Grade:
        match e:
            case ast.Name():
                definitions, state = self.inference.definitions(e), self.inference.state(e)
                return min((self._bound(d, state, seen) for d in definitions), default=Grade.SAID)
            case ast.NamedExpr(value=value) | ast.UnaryOp(operand=value) | ast.Subscript(value=value):
                return self._of(value, seen)
            case ast.Attribute(value=value):
                return self._stored(e, seen) if self.inference.instance_attribute(e) else self._of(value, seen)
            case ast.IfExp(body=body, orelse=orelse):
                return min(self._of(body, seen), self._of(orelse, seen))
            case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
                return max(self._of(left, seen), self._of(right, seen))
            case ast.Call(func=ast.Attribute(value=value, attr=name) as func) if self.syntax.qualified(func) is None:
                if self.inference.of(func).kind is Kind.MODULE:
                    return Grade.CERTAIN
                used = Grade.USED if name in self.inference.tensor_names - api.HOST_READS else Grade.SAID
                return max(used, self._of(value, seen))
            case ast.Call():
                return Grade.CERTAIN if self.inference.of(e).is_tensor else Grade.UNKNOWN
        return Grade.UNKNOWN

    def _stored(self, e: ast.Attribute, seen: frozenset[Hashable]) -> Grade:
        """``self.x``: what the class makes of it."""
        own = self.inference.instance_attribute(e)
        if own is None or not self.inference.attribute(*own).is_tensor:
            return Grade.UNKNOWN
        if own in seen:
            return Grade.CERTAIN  # the others decide
        seen |= {own}
        stores = [s for s in self.class_facts(own[0]).stores.get(own[1], []) if s.how != "declared"]
        grades = [
            Grade.CERTAIN if s.how in ("buffer", "parameter") else self._of(s.value, seen) if s.value else Grade.SAID
            for s in stores
        ]
        return min(grades, default=Grade.SAID)

    def _bound(self, d: Definition, state: State | None, seen: frozenset[Hashable]) -> Grade:
        ruled = state.ruled.get(d, frozenset()) if state is not None else frozenset()
        if d in seen or d.how == "unbound" or Ruling.TENSOR in ruled:
            return Grade.CERTAIN
        seen |= {d}
        match d.how:
            case "parameter":
                return self._given(d, ruled)
            case "augmented":
                assert isinstance(d.node, ast.AugAssign) and isinstance(d.node.target, ast.Name)
                return max(self._of(d.node.target, seen), self._of(d.node.value, seen))
            case "assign" | "iteration" if d.value is not None:
                if isinstance(d.value, (ast.Tuple, ast.List)) and len(d.path) == 1 and d.how == "assign":
                    return self._of(d.value.elts[d.path[0]], seen) if d.path[0] < len(d.value.elts) else Grade.UNKNOWN
                if self.inference.defined(d).is_tensor:
                    return self._of(d.value, seen)
                return self._by_use(d, self.syntax.function_of(d.node))
        return Grade.UNKNOWN

    def _given(self, d: Definition, ruled: frozenset[Ruling]) -> Grade:
        """A parameter: by its annotation, by its uses, and by what calls in this file give it."""
        argument, function = d.node, self.syntax.parents.get(self.syntax.parents[d.node])
        if not isinstance(argument, ast.arg) or not isinstance(function, _FUNCTIONS):
            return Grade.UNKNOWN
        passed = map(self.inference.of, self.facts.ask(Callees).given(d))
        if any(v.kind is Kind.PYTHON or v == FOREIGN for v in passed):
            return Grade.SAID
        used, said = self._by_use(d, function), argument.annotation
        plain = said is not None and self.inference.annotated(said).is_tensor
        if said is not None and Ruling.NOT_NONE in ruled:
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
