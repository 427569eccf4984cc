"""What an expression holds if it is a tensor at all: for places where anything else would be an error.

``x: torch.Tensor | None`` is a tensor wherever ``x.sum()`` returns. Never ask this of what is only tested (``if x:``,
``x is None``) or compared, for there None is as good as a tensor; `Presumed.sure` says whether anything else raises.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import reduce

from patcher.facts.flow.definitions import Definition
from patcher.facts.flow.narrowing import Ruling, asks_what_it_is
from patcher.facts.syntax.tree import dotted, methods_of
from patcher.facts.syntax.written import parsed
from patcher.facts.tables import torch_api as api
from patcher.facts.values.inference import Inference
from patcher.facts.values.types import (
    BOOL,
    FOREIGN,
    UNKNOWN,
    Category,
    Kind,
    Token,
    Value,
    broadcast,
    join,
    named,
    tensor,
)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_TESTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor)


class Presumed(Inference):
    """`Inference` under the supposition that what it is asked about is a tensor."""

    def boolean(self, e: ast.expr) -> bool:
        """Whether ``e``, if it is a tensor, is a boolean one."""
        return self.of(e).is_boolean

    def sure(self, e: ast.expr, plain: Inference) -> bool:
        """Whether ``e`` is a tensor or raises; ``plain`` is the inference without the supposition."""
        if plain.of(e).is_tensor:
            return True
        match e:
            case ast.Name():
                if self._narrowed(e):
                    return self.of(e).is_tensor
                definitions = self.definitions(e)
                return bool(definitions) and all(
                    d.how == "unbound"
                    or (d.how == "assign" and d.value is not None and not d.path and self.sure(d.value, plain))
                    for d in definitions
                )
            case ast.UnaryOp(op=ast.Invert(), operand=operand):
                return self.sure(operand, plain)
            case ast.BinOp(left=left, right=right):
                return self.sure(left, plain) or self.sure(right, plain)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, _TESTS):
                if isinstance(op, (ast.Eq, ast.NotEq)):  # with None, that is a plain False
                    return all(self.sure(s, plain) or plain.of(s).is_number for s in (left, right))
                return self.sure(left, plain) or self.sure(right, plain)
            case ast.IfExp(body=body, orelse=orelse):
                return self.sure(body, plain) and self.sure(orelse, plain)
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in api.TENSOR_ONLY | api.ALIASING and self.of(e).is_tensor
        return False

    def _narrowed(self, name: ast.Name) -> bool:
        """Whether tests on every way to ``name`` say that it is not None."""
        state = self.state(name)
        if state is None:
            return False
        return all({Ruling.NOT_NONE, Ruling.TENSOR} & state.ruled.get(d, frozenset()) for d in state.definitions)

    def annotated(self, annotation: ast.expr) -> Value:
        """What an annotation promises, None aside."""
        if (written := parsed(annotation)) is None:
            return UNKNOWN
        annotation = written
        match annotation:
            case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
                return self.annotated(left)
            case ast.BinOp(left=ast.Constant(value=None), op=ast.BitOr(), right=right):
                return self.annotated(right)
            case ast.Subscript(value=base, slice=inner) if (dotted(base) or "").rpartition(".")[2] == "Optional":
                return self.annotated(inner)
        return super().annotated(annotation)

    def considered(self, definitions: frozenset[Definition]) -> frozenset[Definition]:
        """Those of ``definitions`` that can be a tensor."""
        left = frozenset(d for d in definitions if d.how != "unbound" and self.defined(d).python != "none")
        return left or definitions

    def _of(self, e: ast.expr) -> Value:
        value = super()._of(e)
        if value.kind is not Kind.UNKNOWN or value == FOREIGN:
            return value
        match e:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, _TESTS):
                a, b = self.of(left), self.of(right)  # a comparison that gives a tensor gives a boolean one
                rank, shape = broadcast(a, b) if a.is_tensor or b.is_tensor else (None, None)
                return tensor(rank, BOOL, shape)
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _BITS):
                return tensor(None, BOOL) if self.boolean(left) and self.boolean(right) else UNKNOWN
            case ast.IfExp(body=body, orelse=orelse):
                parts = [v for v in (self.of(body), self.of(orelse)) if v.python != "none"]
                return reduce(join, parts) if parts else UNKNOWN
            case ast.Call(func=func):
                return self._returned(func)
        return value

    def _parameter(self, d: Definition) -> Value:
        value = super()._parameter(d)
        if value.kind is Kind.UNKNOWN and isinstance(d.node, ast.arg) and d.node.annotation is not None:
            promised = self.annotated(d.node.annotation)
            if promised.is_tensor:
                return named(promised, Token("name", (d,)))
        elif value.kind is Kind.UNKNOWN and isinstance(d.node, ast.arg) and self._used_beside_none(d):
            return named(tensor(), Token("name", (d,)))
        return value

    def _used_beside_none(self, d: Definition) -> bool:
        """Whether something that only a tensor has is used on a parameter, and all that it is tested for is None."""
        function = self.syntax.parents[self.syntax.parents[d.node]]
        if not isinstance(function, _FUNCTIONS):
            return False
        uses = self.flow_of(function).uses.get(d, [])
        asked = (self.syntax.parents[u] for u in uses)
        return not any(map(asks_what_it_is, asked)) and any(self.is_tensor_use(u) for u in uses)

    def _returned(self, func: ast.expr) -> Value:
        """What a method of this class that nothing overrides returns, as far as it can be said elsewhere."""
        own = self.instance_attribute(func)
        if own is None or own[1] in self.class_facts(own[0]).stores:
            return UNKNOWN
        methods = [s for s in methods_of(own[0]) if s.name == own[1]]
        name = f"{self.module}.{self.syntax.qualname(own[0]) or own[0].name}"
        if len(methods) != 1 or len(self.project.methods(name, own[1])) > 1:
            return UNKNOWN
        wrapped = [d for d in methods[0].decorator_list if self.syntax.qualified(d) not in api.GRAD_OFF]
        inside = [n for n in ast.walk(methods[0]) if self.syntax.function_of(n) is methods[0]]
        returns = [n.value for n in inside if isinstance(n, ast.Return) and n.value is not None]
        if wrapped or not returns or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in inside):
            return UNKNOWN
        return _outside(reduce(join, map(self.of, returns)))


def _outside(value: Value) -> Value:
    """What is left of ``value`` where the names that it was worked out from mean something else."""
    if value.elements:
        return replace(value, elements=tuple(map(_outside, value.elements)))
    if not value.is_tensor:
        return value if value.kind is Kind.PYTHON else UNKNOWN
    rank = value.rank if value.rank is not None and value.rank.base is None else None
    boolean = value.dtype is not None and value.dtype.category is Category.BOOL
    return tensor(rank, BOOL if boolean else None)
