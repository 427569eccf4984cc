"""What is worked out under a test that skips it, and may be worked out in any case: operations on whole tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from patcher.facts import Facts
from patcher.facts.analysis import Analysis
from patcher.facts.effects.conditions import Conditions
from patcher.facts.effects.totality import Effects
from patcher.facts.effects.unchanged import Unchanged
from patcher.facts.syntax.written import given
from patcher.facts.tables import call_effects as effects
from patcher.facts.tables import torch_api as api
from patcher.facts.values.types import Kind

_PLAIN = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.Compare, ast.IfExp, ast.Call, ast.Subscript),
    *(ast.Slice, ast.Tuple, ast.List, ast.keyword, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop),
)
#: Operations that give a new tensor, a view, or a number that is known without the tensor's data.
_OPERATIONS = (
    api.TENSOR_ONLY
    | api.ALIASING
    | frozenset(what.rpartition(".")[2] for what in api.CREATORS)
    | frozenset(
        "where cat concat stack einsum baddbmm addmm bmm minimum maximum fmin fmax lerp addcmul addcdiv linear "
        "normalize pad one_hot logical_and logical_or logical_xor isclose finfo iinfo broadcast_to take_along_dim "
        "movedim hypot atan2 fmod remainder floor_divide true_divide div mul add sub pow cross diff tile softmin "
        "one_hot tensor full interpolate ge gt le lt eq ne logical_not new_zeros new_ones new_full".split()
    )
) - (api.NAMED_READS - {"where"} | frozenset({"requires_grad_", "backward", "register_hook", "data_ptr"}))
#: Modules that are a network in themselves, and may draw.
_LARGE = frozenset(f"torch.nn.{n}" for n in "MultiheadAttention LSTM GRU".split())
_OF_NUMBERS = frozenset("float int bool abs min max round".split())


class SkippedWork(Analysis):
    """Expressions of one module."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.effects = facts.ask(Effects)
        self.conditions = facts.ask(Conditions)
        self.unchanged = facts.ask(Unchanged)

    def may_be_done(self, e: ast.expr, masks: frozenset[str]) -> bool:
        """Whether ``e`` does nothing but work, of a size and on a way that no data decide; it may raise."""
        nodes = list(ast.walk(e))
        if not all(isinstance(n, _PLAIN) for n in nodes) or self.unchanged.why_impure(e):
            return False
        return all(self._is_plain(n, masks) for n in nodes if isinstance(n, ast.expr))

    def counts(self, e: ast.expr, masks: frozenset[str]) -> bool:
        """Whether ``e`` is made of the mask itself, which may be 0 all over."""
        seen: set[ast.AST] = set()
        stack: list[ast.AST] = [e]
        while stack:
            top = stack.pop()
            if top in seen:
                continue
            seen.add(top)
            for n in ast.walk(top):
                if isinstance(n, ast.expr) and ast.unparse(n) in masks:
                    return True
                if isinstance(n, ast.Name):
                    stack += [d.value for d in self.inference.definitions(n) if d.value is not None]
        return False

    def _is_plain(self, n: ast.expr, masks: frozenset[str]) -> bool:
        if self.inference.of(n).data:
            return False  # a number that was read out of a tensor
        match n:
            case ast.Call():
                return self._is_operation(n)
            case ast.Subscript(slice=at):
                parts = at.elts if isinstance(at, ast.Tuple) else [at]
                return not any(self.presumed.boolean(p) or ast.unparse(p) in masks for p in parts)
            case ast.UnaryOp(op=ast.Not(), operand=test) | ast.IfExp(test=test):
                return self.inference.of(test).kind is Kind.PYTHON or _asks_for_none(test)
        return True

    def _is_operation(self, call: ast.Call) -> bool:
        func = call.func
        if (what := self.syntax.qualified(func)) is not None:
            package, _, name = what.rpartition(".")
            known = package in effects.NAMESPACES and name in _OPERATIONS
            return known and not (name == "where" and len(call.args) < 3)
        if (builtin := self.syntax.builtin(call)) is not None and isinstance(func, ast.Name):
            numbers = all(self._is_number(a) for a in given(call))
            return builtin == "len" or (builtin in _OF_NUMBERS and numbers)
        if not isinstance(func, ast.Attribute):
            return False
        if self.inference.instance_attribute(func) is not None:
            return self.inference.of(func).module in effects.PURE_MODULES - _LARGE
        return func.attr in _OPERATIONS and self.inference.of(func.value).kind in (Kind.TENSOR, Kind.UNKNOWN)

    def _is_number(self, e: ast.expr) -> bool:
        return self.effects.is_number(e) or (isinstance(e, ast.Constant) and isinstance(e.value, str))


def _asks_for_none(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return True
    return False


def named(parts: Iterable[ast.AST]) -> set[str]:
    """The names in ``parts``."""
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}
